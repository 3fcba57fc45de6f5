! What all stories share, part 1: include it after the constants Story, Headline and MAX_SCORE.
!
! A story file named tw-*.z5 is played by jericho as a TextWorld game: it answers "tw-print" (part 2), draws the status line
! "-= Room =-score/turns", and ends with "*** The End ***" or "*** You lost! ***". "tw-seed N" makes variant N (part 2).

Serial "260101";
Release 1;
Constant NO_PLACES;
Constant DIALECT_US;
Replace DrawStatusLine;
Replace AfterGameOver;
Array refusal -> 2;        ! refusal->0 is 1 after a command that was refused or not understood
Array tally --> 1;         ! the score, where a reader of the memory finds it
Global chance;             ! state of the variant's draws

Include "Parser";

! A library message that is not one of these means that nothing was done.
Object LibraryMessages
  with before [ n;
        n = lm_n;
        switch (action) {
            ##Close, ##Drop, ##SwitchOn, ##SwitchOff: if (n == 3) rfalse;
            ##Disrobe, ##Eat: if (n == 2) rfalse;
            ##Enter: if (n >= 5) rfalse;
            ##Examine, ##Inv, ##Look, ##ListMiscellany, ##Listen, ##Prompt, ##Score, ##Smell, ##Taste, ##Wait: rfalse;
            ##Exit: if (n == 3 or 5 or 6) rfalse;
            ##Give, ##Wear: if (n == 4) rfalse;
            ##Insert: if (n == 6 or 8 or 9) rfalse;
            ##Lock: if (n == 5) rfalse;
            ##LookUnder: if (n == 2) rfalse;
            ##Miscellany: if (n == 3 or 4 or 9 or 17 or 18 or 19 or 26 or 42 or 50 or 58) rfalse;
            ##Open: if (n >= 4) rfalse;
            ##PutOn: if (n == 5 or 7 or 8) rfalse;
            ##Remove: if (n == 3) rfalse;
            ##Search: if (n ~= 1 or 5) rfalse;
            ##Take: if (n == 1 or 13) rfalse;
            ##Touch: if (n == 2) rfalse;
            ##Unlock: if (n == 4 or 5) rfalse;
        }
        refusal->0 = 1;
        rfalse;
    ];

Include "VerbLib";

Attribute rewarded;        ! what was done counts only once
Property setting 0;        ! of a dial, a code or the like: anything that a variant draws
Property way_a 0;
Property way_b 0;

[ DrawStatusLine;
    @split_window 1; @set_window 1; @set_cursor 1 1;
    print "-= ", (name) location, " =-", score, "/", turns;
    @set_window 0;
];

[ AfterGameOver; for (::) { print "^>"; read buffer parse DrawStatusLine; } ];

[ DeathMessage; if (deadflag == 3) print "The End"; else print "You lost!"; ];

[ BeforeParsing; refusal->0 = 0; rfalse; ];

[ Win text; print (string) text, "^"; deadflag = 3; rtrue; ];

[ Lose text; print (string) text, "^"; deadflag = 4; rtrue; ];

! Say why something cannot be done.
[ No text; refusal->0 = 1; print (string) text, "^"; rtrue; ];

! Points for a thing done, once.
[ Award thing points;
    if (thing has rewarded) rfalse;
    give thing rewarded;
    score = score + points;
    tally-->0 = score;
    rtrue;
];

! A number from 0 to n-1.
[ Draw n; chance = (chance * 109 + 853) & $7fff; return (chance / 32) % n; ];

! Put the first n entries of a word array into a drawn order.
[ Shuffle list n  i j swap;
    for (i = n - 1: i > 0: i--) {
        j = Draw(i + 1);
        swap = list-->i; list-->i = list-->j; list-->j = swap;
    }
];

[ WayName way;
    switch (way) {
        n_to: print "north"; s_to: print "south"; e_to: print "east"; w_to: print "west";
        ne_to: print "northeast"; nw_to: print "northwest"; se_to: print "southeast"; sw_to: print "southwest";
        u_to: print "up"; d_to: print "down"; in_to: print "in"; out_to: print "out";
    }
];

! Every description ends with the exits.
[ LookRoutine way any value;
    if (location == thedark) rfalse;
    objectloop (way in Compass) {
        if (location provides (way.door_dir)) {
            value = location.(way.door_dir);
            if (metaclass(value) == Object) {
                if (any) print ", "; else print "^Exits: ";
                any = true;
                print (WayName) way.door_dir;
                if (value has door) {
                    print " (", (the) value;
                    if (value has openable && value hasnt open) print ", closed";
                    print ")";
                }
            }
        }
    }
    if (any) print ".^";
    rtrue;
];

Class Room has light;

Class Furniture has static;

! found_in gives the two rooms, way_a and way_b the direction property from each to the other.
Class Portal
  with door_to [; if (real_location == self.&found_in-->0) return self.&found_in-->1; return self.&found_in-->0; ],
       door_dir [; if (real_location == self.&found_in-->0) return self.way_a; return self.way_b; ],
  has  door openable static scenery;
