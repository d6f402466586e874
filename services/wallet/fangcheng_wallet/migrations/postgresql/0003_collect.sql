-- Operators collect what players owe, or write it off: one verb more.
ALTER TABLE operations
    DROP CONSTRAINT operations_verb_check,
    ADD CONSTRAINT operations_verb_check CHECK (
        verb IN (
            'deposit', 'withdraw', 'place_holds', 'top_up_hold', 'hand_over', 'extend_holds',
            'release_holds', 'expire_hold', 'settle', 'reverse', 'freeze', 'collect'
        )
    );
