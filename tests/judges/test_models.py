"""Cross-encoders and NLI models as judges: the real classes, small and with random weights."""

import numpy as np
import pytest

from stemma import JudgeError, RerankerError, UsageError
from stemma.judges import CrossEncoderJudge, Curve, Judge, NLIJudge

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
NLI = {0: "contradiction", 1: "entailment", 2: "neutral"}
ONE, OTHER = "how do i cancel", "can i cancel it"


def encoder(folder, **named):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    return sentence_transformers.CrossEncoder(folder, device="cpu", **named)


@pytest.fixture(scope="module")
def scoring(tmp_path_factory, saved):
    return encoder(saved(tmp_path_factory.mktemp("models") / "tiny-scores"))


@pytest.fixture(scope="module")
def inferring(tmp_path_factory, saved):
    return encoder(saved(tmp_path_factory.mktemp("models") / "tiny-nli", labels=NLI))


class TestCrossEncoder:
    """One score a pair."""

    def test_a_real_one_gives_its_sigmoid_as_the_probability(self, scoring):
        judge = CrossEncoderJudge(scoring)
        assert isinstance(judge, Judge)
        likely = judge.judge(ONE, OTHER, "questions")
        assert likely == pytest.approx(float(scoring.predict([(ONE, OTHER)])[0]), abs=1e-6)
        assert likely != judge.judge(ONE, "hen", "questions")
        assert "tiny-scores@" in judge.revision

    def test_raw_scores_go_through_a_curve_that_is_part_of_the_revision(self):
        asked = []

        def score(one, others):
            asked.append((one, others))
            return [4.0]

        plain = CrossEncoderJudge(score, revision="s/1", curve=Curve(slope=2.0, middle=4.0))
        assert plain.judge(ONE, OTHER, "questions") == 0.5
        steeper = CrossEncoderJudge(score, revision="s/1", curve=Curve(slope=2.0, middle=3.0))
        assert steeper.judge(ONE, OTHER, "answers") == pytest.approx(0.8808, abs=1e-4)
        assert plain.revision != steeper.revision
        assert asked == [(ONE, [OTHER])] * 2
        assert plain.score(ONE, OTHER) == 4.0

    def test_scores_that_are_no_probabilities_need_a_curve(self):
        judge = CrossEncoderJudge(lambda one, others: [4.0], revision="s/1")
        with pytest.raises(JudgeError, match="pass curve="):
            judge.judge(ONE, OTHER, "questions")

    @pytest.mark.parametrize("given", [[float("nan")], [float("inf")], [None]])
    def test_what_is_no_number_is_no_probability(self, given):
        for curve in (None, Curve(slope=1.0, middle=0.0)):
            judge = CrossEncoderJudge(lambda one, others: given, revision="s/1", curve=curve)
            with pytest.raises(JudgeError):
                judge.judge(ONE, OTHER, "questions")

    def test_one_that_classifies_is_refused(self, inferring):
        with pytest.raises(RerankerError, match="3 numbers for one text"):
            CrossEncoderJudge(inferring).judge(ONE, OTHER, "questions")

    @pytest.mark.parametrize("wrong", [{"curve": 2.0}, {"name": ""}, {"revision": ""}])
    def test_wrong_arguments_are_refused(self, scoring, wrong):
        with pytest.raises(UsageError):
            CrossEncoderJudge(scoring, **wrong)

    def test_a_function_without_a_name_needs_a_revision(self):
        with pytest.raises(UsageError, match="revision"):
            CrossEncoderJudge(lambda one, others: [1.0])


def rows(*distributions):
    """A model that gives these rows, and notes what it is asked."""

    def classify(pairs):
        classify.asked.append(list(pairs))
        return [list(one) for one in distributions]

    classify.asked = []
    return classify


class TestNLI:
    """Entailment in both directions."""

    def test_a_real_one_gives_the_lower_of_both_directions(self, inferring):
        judge = NLIJudge(inferring)
        assert isinstance(judge, Judge)
        both = inferring.predict([(ONE, OTHER), (OTHER, ONE)], apply_softmax=True)
        assert judge.judge(ONE, OTHER, "questions") == pytest.approx(both[:, 1].min(), abs=1e-6)
        assert "tiny-nli@" in judge.revision

    def test_a_pipeline_gives_the_same(self, inferring, tmp_path, saved):
        transformers = pytest.importorskip("transformers")
        folder = saved(tmp_path / "tiny-nli", labels=NLI)
        pipeline = transformers.pipeline("text-classification", model=folder, device="cpu")
        likely = NLIJudge(pipeline).judge(ONE, OTHER, "questions")
        assert likely == pytest.approx(
            NLIJudge(encoder(folder)).judge(ONE, OTHER, "questions"), abs=1e-5
        )
        assert NLIJudge(pipeline).revision != NLIJudge(inferring).revision

    def test_the_order_of_the_labels_is_read_from_the_model(self, tmp_path, saved):
        other = {0: "ENTAILMENT", 1: "neutral", 2: "contradiction"}
        model = encoder(saved(tmp_path / "ordered", labels=other))
        both = model.predict([(ONE, OTHER), (OTHER, ONE)], apply_softmax=True)
        likely = NLIJudge(model).judge(ONE, OTHER, "questions")
        assert likely == pytest.approx(both[:, 0].min(), abs=1e-6)

    def test_labels_that_do_not_tell_are_refused_unless_they_are_given(self, tmp_path, saved):
        unnamed = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
        model = encoder(saved(tmp_path / "unnamed", labels=unnamed))
        with pytest.raises(UsageError, match="pass labels="):
            NLIJudge(model)
        judge = NLIJudge(model, labels=["entailment", "neutral", "contradiction"])
        assert 0.0 <= judge.judge(ONE, OTHER, "questions") <= 1.0

    @pytest.mark.parametrize(
        ("there", "back", "likely"),
        [((0.1, 0.8, 0.1), (0.0, 0.9, 0.1), 0.8), ((0.0, 1.0, 0.0), (0.9, 0.05, 0.05), 0.05)],
    )
    def test_both_directions_are_asked_at_once_and_the_lower_counts(self, there, back, likely):
        model = rows(there, back)
        judge = NLIJudge(model, labels=list(NLI.values()), revision="rows/1")
        assert judge.judge(ONE, OTHER, "answers") == pytest.approx(likely)
        assert model.asked == [[(ONE, OTHER), (OTHER, ONE)]]

    def test_two_labels_will_do(self):
        model = rows((0.7, 0.3), (0.6, 0.4))
        judge = NLIJudge(model, labels=["entailment", "not_entailment"], revision="rows/1")
        assert judge.judge(ONE, OTHER, "questions") == pytest.approx(0.6)

    @pytest.mark.parametrize(
        "labels",
        [
            ["entailment"],
            ["yes", "no"],
            ["entailment", "entails", "neutral"],
            ["entailment", "LABEL_1", "LABEL_2"],
            [],
        ],
    )
    def test_labels_of_nonsense_are_refused(self, labels):
        with pytest.raises(UsageError, match="which one is entailment"):
            NLIJudge(rows(), labels=labels, revision="rows/1")

    @pytest.mark.parametrize(
        "given",
        [
            [],
            [(0.1, 0.8, 0.1)],
            [(0.5, 0.5), (0.5, 0.5)],
            [(4.0, -2.0, 0.1), (1.0, 0.0, 0.0)],
            [(0.9, 0.9, 0.9), (0.9, 0.9, 0.9)],
            [("a", "b", "c"), ("a", "b", "c")],
            [np.full(3, np.nan), np.full(3, np.nan)],
        ],
    )
    def test_what_is_no_distribution_is_no_judgement(self, given):
        judge = NLIJudge(rows(*given), labels=list(NLI.values()), revision="rows/1")
        with pytest.raises(JudgeError):
            judge.judge(ONE, OTHER, "questions")

    def test_without_labels_a_function_or_a_thing_without_any_is_refused(self):
        for thing in (rows(), object(), "nli"):
            with pytest.raises(UsageError):
                NLIJudge(thing, revision="x/1")
        with pytest.raises(UsageError, match="no model for pairs"):
            NLIJudge(object(), labels=list(NLI.values()), revision="x/1")
