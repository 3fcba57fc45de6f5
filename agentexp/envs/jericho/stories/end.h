! What all stories share, part 2: include it after the story's objects and its routine Variant.

Include "Grammar";

Verb 'talk' 'chat' * creature -> Talk * 'to'/'with' creature -> Talk;
Extend 'ask' first * creature -> Talk;
Verb 'ring' 'sound' * noun -> Ring;
Verb 'wind' 'crank' * noun -> Wind;
Verb 'mix' 'stir' 'knead' * noun -> Mix;
Verb 'bake' 'cook' * noun -> Bake;
Verb 'pour' * held -> Pour * held 'into'/'in'/'on'/'onto' noun -> Pour;
Verb 'hook' * held 'to'/'on'/'onto' noun -> Tie;
Extend 'set' first * noun 'to' number -> SetTo;
Extend 'turn' last * noun 'to' number -> SetTo;
Extend 'dig' last * noun 'up' -> Dig;

[ TalkSub; if (RunLife(noun, ##Talk)) rtrue; No("There is no answer."); ];
[ RingSub; No("That makes no sound."); ];
[ WindSub; No("That is not something you can wind."); ];
[ MixSub; No("There is nothing in it to mix."); ];
[ BakeSub; No("That is not something you can bake."); ];
[ PourSub; No("That is not something you can pour."); ];

! ------------------------------------------------------------------------------------------------------ for jericho

Verb meta 'tw-print'
    * 'max_score'           -> TwMaxScore
    * 'endofobject' 'id'    -> TwLast
    * 'player' 'id'         -> TwPlayer
    * 'layout'              -> TwLayout;
Verb meta 'tw-seed' * number -> TwSeed;

[ TwMaxScoreSub; print MAX_SCORE, "^"; ];
[ TwLastSub; print EndOfObject, "^"; ];
[ TwPlayerSub; print selfobj, "^"; ];

! Numbers that a reader of the story's memory needs: name and number of properties, then of attributes.
Array layout_words -->
    "north" n_to "south" s_to "east" e_to "west" w_to "northeast" ne_to "northwest" nw_to "southeast" se_to
    "southwest" sw_to "up" u_to "down" d_to "in" in_to "out" out_to "before" before "after" after
    "found_in" found_in "with_key" with_key "setting" setting "life" life "animate" animate
    "container" container "door" door "edible" edible "enterable" enterable "light" light "lockable" lockable
    "locked" locked "on" on "open" open "openable" openable "scenery" scenery
    "supporter" supporter "switchable" switchable "transparent" transparent "concealed" concealed "worn" worn
    "clothing" clothing "general" general "visited" visited "moved" moved "rewarded" rewarded;

[ TwLayoutSub i;
    print "refusal ", refusal, " tally ", tally, " static ", static;
    for (i = 0: i < 80: i = i + 2) print " ", (string) layout_words-->i, " ", layout_words-->(i + 1);
    new_line;
];

! Variant n: the same n always gives the same world.
[ TwSeedSub;
    chance = (noun * 57 + 11) & $7fff;
    Draw(2); Draw(2); Draw(2);
    Variant();
    score = 0; tally-->0 = 0; last_score = 0; turns = 0;
    Opening();
    <Look>;
];

[ Initialise;
    notify_mode = 0;
    lookmode = 2;
    location = START;
    Opening();
    return 2;
];

Object EndOfObject "EndOfObject";
