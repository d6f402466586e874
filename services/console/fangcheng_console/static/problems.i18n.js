export default {
  "en": {
    "problem.UNKNOWN_TABLE": "There is no such table; its hands may still be found by its id.",
    "problem.UNKNOWN_WALLET": "Nobody with this id has a wallet: ids are case-sensitive, and not nicknames.",
    "problem.UNKNOWN_SETTLEMENT": "There is no settlement with this key: a table’s id, then / and the number of the hand.",
    "problem.UNAVAILABLE": "A service does not answer: see the health page. This is worth trying again.",
    "problem.DEADLINE_EXCEEDED": "A service takes too long to answer: see the health page. This is worth trying again.",
    "problem.SERVICE_FAILED": "A service behind the console failed at this; its log tells why.",
    "problem.CONSOLE_AWAY": "The console does not answer.",
    "problem.INTERNAL": "The console failed at this; its log tells why."
  },
  "zh": {
    "problem.UNKNOWN_TABLE": "没有这张牌桌；打完的局仍可在牌谱中按牌桌编号查询。",
    "problem.UNKNOWN_WALLET": "没有这位玩家的钱包：请输入玩家编号（区分大小写），不是显示的名字。",
    "problem.UNKNOWN_SETTLEMENT": "没有这笔结算；编号的格式是：牌桌编号/局数。",
    "problem.UNAVAILABLE": "后台服务没有回应：请查看状态页，稍后重试。",
    "problem.DEADLINE_EXCEEDED": "后台服务回应超时：请查看状态页，稍后重试。",
    "problem.SERVICE_FAILED": "后台服务处理失败，原因见该服务的日志。",
    "problem.CONSOLE_AWAY": "控制台没有回应。",
    "problem.INTERNAL": "控制台处理失败，原因见控制台的日志。"
  }
};
