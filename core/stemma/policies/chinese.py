"""The Chinese words that the guards know, to be read and extended. Nothing here decides."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ANTONYMS", "HAN", "lines"]

_SYNONYMS = """
启用 开启 打开 开通
关闭 关掉 禁用 停用 关上
删除 移除 删掉
修改 更改 更换 变更
购买 买
退款 退钱
重置 重设
申请 办理
登录 登陆
价格 价钱 费用
"""

ANTONYMS = """
启用 | 关闭
安装 | 卸载
导入 | 导出
上传 | 下载
登录 | 登出 注销 退出
允许 支持 同意 | 禁止 拒绝 反对
增加 提高 增大 | 减少 降低 减小
添加 新增 | 删除
开始 | 结束 停止
最大 最高 最多 最长 最快 | 最小 最低 最少 最短 最慢
之前 以前 | 之后 以后
前 | 后
上 | 下
左 | 右
里 内 | 外
购买 | 卖
锁定 | 解锁
加密 | 解密
今天 | 明天 昨天
公开 | 私密
第一 | 最后
收入 | 支出
存款 | 取款
进口 | 出口
男 | 女
出生 | 去世 逝世
成立 创立 | 解散
东部 | 西部
南部 | 北部
胜 | 负
上升 上涨 | 下降 下跌
"""

_STOP = (
    "你好 谢谢 告诉 知道 麻烦 请问 一下 我想 想要 我要 可以 能够 需要 "
    "怎么样 怎么 如何 怎样 什么时候 什么 哪里 哪儿 多少 为什么 是否 "
    "有没有 能不能 可不可以 是不是 会不会 能否 还是 一个 操作 的话 的 "
    "了 吗 呢 吧 啊 呀 是 我 你 您 他 她 它 请 问 想 要 能 会 "
    "在 这 那 个 有 就 也 都 很 地 得 和 与 及 把 谁 哪 啥 为 "
    "么"
)
_KEEP = (
    "不同 不过 不但 不仅 不错 不断 不久 不管 不锈钢 未来 没关系 无论 "
    "无线 无限 未必 无人机 不动产 无锡 特别 别墅 个别 区别 类别 级别 "
    "识别 分别 别人 性别 告别"
)
_NEGATION = "不 没有 没 无 未 别 勿 非 不能 不会 不可以 不可 不要 不支持"
_ROLES = "从:from 到:to 至:to 比:than 给:for 向:to 被:by 由:by 对:on 用:with"


def lines(table: str) -> list[str]:
    """The rows of a table that is written as a text."""
    return [line.strip() for line in table.replace("\\\n", "").splitlines() if line.strip()]


def _han() -> dict[str, tuple[str, str]]:
    words: dict[str, tuple[str, str]] = {}
    for line in lines(ANTONYMS):
        words |= {word: ("word", word) for word in line.replace("|", " ").split()}
    for line in lines(_SYNONYMS):
        first = line.split()[0]
        words |= dict.fromkeys(line.split(), ("word", first))
    words |= {word: ("word", word) for word in _KEEP.split()}
    words |= {word: ("stop", word) for word in _STOP.split()}
    words |= {word: ("negation", word) for word in _NEGATION.split()}
    for pair in _ROLES.split():
        word, role = pair.split(":")
        words[word] = ("role", role)
    return words


HAN: Mapping[str, tuple[str, str]] = _han()
"""Chinese words that are read whole: their kind (word, stop, negation, role) and meaning."""
