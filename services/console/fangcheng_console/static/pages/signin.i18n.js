export default {
  "en": {
    "signin.title": "Sign in",
    "signin.lead": "With a token for a viewer or an operator. The page hands it in once and keeps nothing of it.",
    "signin.token": "Token",
    "signin.submit": "Sign in",
    "signin.working": "Signing in…",
    "signin.how": "Where do I get one?",
    "signin.how.link": "On the machine that runs the suite this prints a link that signs you in:",
    "signin.how.viewer": "A viewer sees tables, hands and wallets; an operator may also reveal hands and act. With viewer it makes a viewer's link:",
    "signin.failed.TOKEN_INVALID": "This is not a token of this suite.",
    "signin.failed.TOKEN_EXPIRED": "This token has expired. Ask for a new one.",
    "signin.failed.ROLE_NOT_ALLOWED": "This is a player's or a service's token. The console needs one for a viewer or an operator.",
    "signin.failed.TOO_MANY_ATTEMPTS": "Too many attempts from here. Wait for a minute.",
    "signin.failed.CONSOLE_AWAY": "The console does not answer. Try again."
  },
  "zh": {
    "signin.title": "登录",
    "signin.lead": "请使用观察员或运营令牌。令牌只提交一次，页面不会保存。",
    "signin.token": "令牌",
    "signin.submit": "登录",
    "signin.working": "正在登录…",
    "signin.how": "如何获取令牌？",
    "signin.how.link": "在运行本套服务的机器上执行以下命令，即可得到登录链接：",
    "signin.how.viewer": "观察员可查看牌桌、牌谱和钱包；运营还可明牌和执行操作。以下命令生成观察员链接：",
    "signin.failed.TOKEN_INVALID": "这不是本套服务的令牌。",
    "signin.failed.TOKEN_EXPIRED": "令牌已过期，请重新获取。",
    "signin.failed.ROLE_NOT_ALLOWED": "这是玩家或服务的令牌。登录控制台需要观察员或运营令牌。",
    "signin.failed.TOO_MANY_ATTEMPTS": "尝试次数过多，请一分钟后再试。",
    "signin.failed.CONSOLE_AWAY": "控制台无响应，请重试。"
  }
};
