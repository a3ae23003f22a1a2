"""What every test needs."""

import asyncio
import string

import pytest


@pytest.fixture(autouse=True)
def _no_event_loop_is_left_open():
    """Where none is current, LlamaIndex's sync calls would make one, and never close it.

    When it is collected, the test that runs just then is blamed, whichever that is.
    """
    asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def saved():
    """Saves a model for pairs of texts: of one layer, with random weights, and reading letters.

    `labels` are as many as there are, or their names; one is a score.
    """
    torch = pytest.importorskip("torch", reason="sentence-transformers is not installed")
    transformers = pytest.importorskip("transformers", reason="as above")
    letters = string.ascii_lowercase
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]

    def save(folder, *, seed=1, labels=1):
        folder.mkdir(exist_ok=True)
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text("\n".join(words), encoding="utf-8")
        torch.manual_seed(seed)
        config = transformers.BertConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=64,
            initializer_range=1.0,
            **({"num_labels": labels} if isinstance(labels, int) else {"id2label": labels}),
        )
        transformers.BertTokenizerFast(str(vocabulary)).save_pretrained(folder)
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
        return str(folder)

    return save
