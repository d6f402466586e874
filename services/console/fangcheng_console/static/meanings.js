// What fan items, options and declarations of our rule sets mean, in Chinese. The evaluator tells it
// in English; of a rule set that is not here, that is what is shown.

const TING = "听一张牌并锁手；多一番，输家报听也各自多付一番。";
const CAP = "每个输家胡牌分的上限；0 为不封顶。";
const CLOSED = "没有吃、碰、明杠、补杠。";
const DISCARDER = "其打出的牌或杠的牌被胡。";
const DEALER = "庄家胡牌，或庄家作为输家付分。";
const SELF_DRAW = "自己摸到胡的牌。";
const TWIN = "每两个相同的顺子计一次；输家的须都是吃的。";
const FOUR = "每种序数牌四张全有计一次；输家的只看吃和碰。";
const TRIPLETS = "四组刻子或杠。";
const THREE_CLOSED = "胡牌者开门，其余三家都没开门。";
const TRIPLE = "三个相同的顺子；输家的须三个都是吃的。";
const ESCAPE = "逃跑的座位付给平台的分。";
const ONLY_DISCARDER = "点炮胡时只由点炮者付自己的那一份。";
const SEVERAL = "同一张牌能胡的都胡；关闭则只有最近的一家胡（截胡）。";

const MEANINGS = {
  baishan_kele: {
    ting: TING,
    cap: CAP,
    discarder_pays: ONLY_DISCARDER,
    escape_penalty: ESCAPE,
    piao: "发牌前各家选 0、5 或 10 分，胡牌之外另付。",
    closed: CLOSED,
    self_draw: SELF_DRAW,
    discarder: DISCARDER,
    dealer: DEALER,
    last_tile: "四组副露，没有暗杠。",
    twin_seq: TWIN,
    four_in_one: FOUR,
    all_triplets: TRIPLETS,
    three_closed: THREE_CLOSED,
    half_flush: "一门序数牌加字牌。",
    triple_seq: TRIPLE,
    kong_win: "胡的牌是杠后补的。",
    kong_discard: "打出的牌是在自己开杠补牌之后。",
    seven_pairs: "七个对子；四张相同算两对。",
    full_flush: "只有一门序数牌，或只有字牌。",
    four_closed: "四家都没开门。",
    thirteen_orphans: "固定付两倍封顶分。",
    heavenly: "庄家起手即胡：固定付封顶分。",
  },
  baishan_dazui: {
    ting: TING,
    kong_unit: "普通明杠时其余三家各付的分。",
    cap: CAP,
    discarder_pays: ONLY_DISCARDER,
    closed: CLOSED,
    discarder: DISCARDER,
    self_draw: SELF_DRAW,
    dealer: DEALER,
    all_triplets: TRIPLETS,
    half_flush: "一门序数牌加字牌，或只有字牌。",
    last_tile: "手里只剩一张，四组副露不论种类。",
    kong_win: "胡的牌是杠后补的，与自摸一起计。",
    kong_discard: "打出的牌是在自己开杠补牌之后，与点炮一起计。",
    twin_seq: TWIN,
    four_in_one: FOUR,
    full_flush: "只有一门序数牌。",
    triple_seq: TRIPLE,
    three_closed: THREE_CLOSED,
    four_closed: "四家都没开门。",
    seven_pairs: "七个对子，四张相同算两对：每家固定付封顶分，不另加。",
    thirteen_orphans: "幺九与字牌各一：每家固定付两倍封顶分，不另加。",
  },
  baicheng: {
    kong_unit: "明杠时其余各家付的分，暗杠加倍。",
    cap: CAP,
    escape_penalty: ESCAPE,
    length: "牌桌何时结束：玩家离开（open）、打完一圈四个庄（round）、打完一局（game）。",
    change_treasure: "宝牌其余三张都已亮出时，换下一张作宝牌。",
    yaoji: "胡的牌里有 1 条。",
    jia: "胡顺子中间一张、1-2-3 的 3、7-8-9 的 7、箭牌第三张、对子，或只听一张。",
    closed: "没有吃、碰、明杠、补杠、旋风杠；没开门的输家（门清）多付一番。",
    double_piao: "四组刻子，最后成的是刻子或中发白。",
    single_piao: "四组刻子，最后成的是对子。",
    kong_win: "胡的牌是杠后补的。",
    self_draw: SELF_DRAW,
    treasure_draw: "听牌后摸到宝牌，当作最大的那张听牌。",
    double_treasure: "宝牌本身就是所听的夹胡。",
    dealer: DEALER,
    discarder: DISCARDER,
  },
  shandong: {
    lou_open: "听牌后亮牌并锁手；只能自摸，加倍。",
    lou_hidden: "听牌后锁手但不亮牌；怎么胡都行，不加倍。",
    concealed_honour_flower: "胡之前手里已成的字牌暗刻算一花。",
    several_winners: SEVERAL,
    guarantor: "喂给胡牌者三组副露的座位一家承包。",
    cap: "每家应付的上限，翻倍之后计；0 为不封顶。",
    basic: "没有其他番种。",
    half_flush: "一门序数牌加字牌；或只有字牌（只可能是七对）。",
    straight: "同一门 1 到 9 的三个顺子。",
    kong_win: "胡的牌是开杠或补花后补的。",
    all_triplets: TRIPLETS,
    seven_pairs: "手里七个对子；四张相同算两对。",
    earthly: "非庄家；在任何人吃、碰、杠以及自己打出第一张之前。",
    full_flush: "只有一门序数牌。",
    all_258: "全部是 2、5、8。",
    heavenly: "庄家起手（补花之后）即胡。",
  },
  jintan: {
    false_win_penalty: "允许误喊胡牌，每次罚 20 分。",
    several_winners: SEVERAL,
    cap: "每个输家每一份胡牌分的上限；0 为不封顶。",
    any_pair_wait: "凡是最后成对子的都算独吊，不限于只剩一张。",
    half_flush: "一门序数牌加字牌，或只有字牌。",
    all_triplets: TRIPLETS,
    kong_win: "胡的牌是开杠后补的，不是补花。",
    single_tile: "四组副露，手里只剩一张；开了“单吊算独吊”则最后成的是对子。",
    full_flush: "只有一门序数牌。",
    seven_pairs: "手里七个对子；四张相同算两对。",
  },
};

/**
 * What a fan item, an option or a declaration of a rule set means: `{text, lang}`, in the language if
 * it is known in it. `ruleSetId` is the rule set's id, `spec` the evaluator's description.
 */
export function meaningOf(ruleSetId, spec, lang) {
  const zh = lang === "zh" ? MEANINGS[ruleSetId]?.[spec.id] : undefined;
  return zh ? { text: zh, lang: "zh-CN" } : { text: spec.meaning, lang: "en" };
}
