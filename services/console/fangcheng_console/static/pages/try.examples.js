// Hands worth looking at, by rule set: queries of links to this page.

const analyze = (rules, hand, en, zh, more = "") => ({ query: `rules=${rules}&hand=${hand}${more}`, en, zh });
const score = (rules, more, en, zh) => ({ query: `mode=score&rules=${rules}&${more}`, en, zh });

export const EXAMPLES = {
  baishan_kele: [
    analyze("baishan_kele", "123m456p7778s", "A pong, and three waits", "碰过，听三张", "&melds=pong-555z"),
    analyze("baishan_kele", "123m456p777s1122z9s", "Fourteen tiles: what to discard", "十四张：打哪张"),
    analyze("baishan_kele", "112233455p666z6s", "One away, many useful tiles", "一向听，有效牌多"),
    score("baishan_kele", "dealer=3&hand=123456m111z77z99m&melds3=chi-234m&win=9m", "A closed half flush, drawn", "立门混一色自摸"),
    score("baishan_kele", "hand=19m19p19s1234567z&win=9m&by=discard&from=2", "Thirteen orphans on a discard", "十三幺点炮"),
  ],
  baishan_dazui: [
    analyze("baishan_dazui", "11m2233p5566s7799s", "Seven pairs", "七对"),
    analyze("baishan_dazui", "777888999s11p234m", "Triplets or sequences", "刻子还是顺子"),
  ],
  baicheng: [
    analyze("baicheng", "67m77p111234s", "A wait at both ends", "两头听", "&melds=chi-123p"),
    analyze("baicheng", "11m456p123s34s", "With a whirlwind", "带旋风杠", "&melds=whirlwind-567z"),
  ],
  shandong: [
    analyze("shandong", "123456789m5p", "A straight, ready", "一条龙听牌", "&melds=chi-234s"),
    analyze("shandong", "22555888m22255p", "Only 2, 5 and 8", "将一色"),
  ],
  jintan: [
    analyze("jintan", "123p456s44p67m", "No flower: not on a discard", "没有花：不能吃炮", "&melds=chi-234m"),
    analyze("jintan", "123p456s44p67m", "The same with two flowers", "同一手牌，有两花", "&melds=chi-234m&flowers=12f"),
    score("jintan", "hand=1133m5577p99s22z4z&flowers=1f&win=4z", "Seven pairs drawn with a flower", "七对自摸带一花"),
  ],
};
