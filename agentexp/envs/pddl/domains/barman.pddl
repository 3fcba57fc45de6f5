; Barman: two hands, shot glasses, dispensers, and a shaker that two ingredients are poured into.
; Once used by the wrong ingredients the shaker may be lost for good: it can be emptied only after shaking a cocktail.
(define (domain barman)
  (:requirements :strips :typing)
  (:types hand level beverage dispenser container - object
          ingredient cocktail - beverage
          shot shaker - container)
  (:predicates (ontable ?c - container) (holding ?h - hand ?c - container) (handempty ?h - hand)
               (empty ?c - container) (clean ?c - container)
               (contains ?c - container ?b - beverage) (used ?c - container ?b - beverage)
               (dispenses ?d - dispenser ?i - ingredient)
               (shaker-empty-level ?s - shaker ?l - level) (shaker-level ?s - shaker ?l - level)
               (next ?l1 - level ?l2 - level)
               (unshaked ?s - shaker) (shaked ?s - shaker)
               (cocktail-part1 ?c - cocktail ?i - ingredient) (cocktail-part2 ?c - cocktail ?i - ingredient))

  ; hands
  (:action grasp
    :parameters (?hand - hand ?container - container)
    :precondition (and (handempty ?hand) (ontable ?container))
    :effect (and (holding ?hand ?container) (not (handempty ?hand)) (not (ontable ?container))))
  (:action leave
    :parameters (?hand - hand ?container - container)
    :precondition (holding ?hand ?container)
    :effect (and (handempty ?hand) (ontable ?container) (not (holding ?hand ?container))))

  ; shot glasses
  (:action fill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand1 - hand ?hand2 - hand ?dispenser - dispenser)
    :precondition (and (holding ?hand1 ?shot) (handempty ?hand2) (dispenses ?dispenser ?ingredient)
                       (empty ?shot) (clean ?shot))
    :effect (and (contains ?shot ?ingredient) (used ?shot ?ingredient) (not (empty ?shot)) (not (clean ?shot))))
  (:action refill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand1 - hand ?hand2 - hand ?dispenser - dispenser)
    :precondition (and (holding ?hand1 ?shot) (handempty ?hand2) (dispenses ?dispenser ?ingredient)
                       (empty ?shot) (used ?shot ?ingredient))
    :effect (and (contains ?shot ?ingredient) (not (empty ?shot))))
  (:action empty-shot
    :parameters (?hand - hand ?shot - shot ?beverage - beverage)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?beverage))
    :effect (and (empty ?shot) (not (contains ?shot ?beverage))))
  (:action clean-shot
    :parameters (?shot - shot ?beverage - beverage ?hand1 - hand ?hand2 - hand)
    :precondition (and (holding ?hand1 ?shot) (handempty ?hand2) (empty ?shot) (used ?shot ?beverage))
    :effect (and (clean ?shot) (not (used ?shot ?beverage))))

  ; the shaker
  (:action pour-shot-to-clean-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand ?level1 - level ?level2 - level)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?ingredient) (empty ?shaker) (clean ?shaker)
                       (shaker-level ?shaker ?level1) (next ?level1 ?level2))
    :effect (and (empty ?shot) (contains ?shaker ?ingredient) (unshaked ?shaker) (shaker-level ?shaker ?level2)
                 (not (contains ?shot ?ingredient)) (not (empty ?shaker)) (not (clean ?shaker))
                 (not (shaker-level ?shaker ?level1))))
  (:action pour-shot-to-used-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand ?level1 - level ?level2 - level)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?ingredient) (unshaked ?shaker)
                       (shaker-level ?shaker ?level1) (next ?level1 ?level2))
    :effect (and (empty ?shot) (contains ?shaker ?ingredient) (shaker-level ?shaker ?level2)
                 (not (contains ?shot ?ingredient)) (not (shaker-level ?shaker ?level1))))
  (:action empty-shaker
    :parameters (?hand - hand ?shaker - shaker ?cocktail - cocktail ?level1 - level ?level2 - level)
    :precondition (and (holding ?hand ?shaker) (contains ?shaker ?cocktail) (shaked ?shaker)
                       (shaker-level ?shaker ?level1) (shaker-empty-level ?shaker ?level2))
    :effect (and (empty ?shaker) (shaker-level ?shaker ?level2)
                 (not (shaked ?shaker)) (not (contains ?shaker ?cocktail)) (not (shaker-level ?shaker ?level1))))
  (:action clean-shaker
    :parameters (?hand1 - hand ?hand2 - hand ?shaker - shaker)
    :precondition (and (holding ?hand1 ?shaker) (handempty ?hand2) (empty ?shaker))
    :effect (clean ?shaker))
  (:action shake
    :parameters (?cocktail - cocktail ?part1 - ingredient ?part2 - ingredient ?shaker - shaker ?hand1 - hand ?hand2 - hand)
    :precondition (and (holding ?hand1 ?shaker) (handempty ?hand2) (unshaked ?shaker)
                       (contains ?shaker ?part1) (contains ?shaker ?part2)
                       (cocktail-part1 ?cocktail ?part1) (cocktail-part2 ?cocktail ?part2))
    :effect (and (shaked ?shaker) (contains ?shaker ?cocktail)
                 (not (unshaked ?shaker)) (not (contains ?shaker ?part1)) (not (contains ?shaker ?part2))))
  (:action pour-shaker-to-shot
    :parameters (?beverage - beverage ?shot - shot ?hand - hand ?shaker - shaker ?level1 - level ?level2 - level)
    :precondition (and (holding ?hand ?shaker) (shaked ?shaker) (contains ?shaker ?beverage)
                       (empty ?shot) (clean ?shot) (shaker-level ?shaker ?level1) (next ?level2 ?level1))
    :effect (and (contains ?shot ?beverage) (shaker-level ?shaker ?level2)
                 (not (clean ?shot)) (not (empty ?shot)) (not (shaker-level ?shaker ?level1)))))
