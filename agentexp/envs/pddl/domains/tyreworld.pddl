; Tyreworld: change flat tyres with the tools in the boot. A hub has one set of nuts.
(define (domain tyreworld)
  (:requirements :strips :typing)
  (:types container hub thing - object
          tool wheel nut - thing)
  (:constants wrench jack pump - tool)
  (:predicates (unlocked ?c - container) (isopen ?c - container) (closed ?c - container)
               (have ?t - thing) (in ?t - thing ?c - container)
               (tight ?n - nut ?h - hub) (loose ?n - nut ?h - hub)
               (on-ground ?h - hub) (not-on-ground ?h - hub)
               (fastened ?h - hub) (unfastened ?h - hub) (free ?h - hub) (on ?w - wheel ?h - hub)
               (intact ?w - wheel) (inflated ?w - wheel) (not-inflated ?w - wheel))

  ; the boot
  (:action open
    :parameters (?container - container)
    :precondition (and (unlocked ?container) (closed ?container))
    :effect (and (isopen ?container) (not (closed ?container))))
  (:action close
    :parameters (?container - container)
    :precondition (isopen ?container)
    :effect (and (closed ?container) (not (isopen ?container))))
  (:action fetch
    :parameters (?thing - thing ?container - container)
    :precondition (and (in ?thing ?container) (isopen ?container))
    :effect (and (have ?thing) (not (in ?thing ?container))))
  (:action put-away
    :parameters (?thing - thing ?container - container)
    :precondition (and (have ?thing) (isopen ?container))
    :effect (and (in ?thing ?container) (not (have ?thing))))

  ; on the ground
  (:action loosen
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (tight ?nut ?hub) (on-ground ?hub))
    :effect (and (loose ?nut ?hub) (not (tight ?nut ?hub))))
  (:action tighten
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (loose ?nut ?hub) (on-ground ?hub))
    :effect (and (tight ?nut ?hub) (not (loose ?nut ?hub))))
  (:action jack-up
    :parameters (?hub - hub)
    :precondition (and (have jack) (on-ground ?hub))
    :effect (and (not-on-ground ?hub) (not (on-ground ?hub)) (not (have jack))))
  (:action jack-down
    :parameters (?hub - hub)
    :precondition (not-on-ground ?hub)
    :effect (and (on-ground ?hub) (have jack) (not (not-on-ground ?hub))))

  ; on the jack
  (:action undo
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (not-on-ground ?hub) (fastened ?hub) (have wrench) (loose ?nut ?hub))
    :effect (and (have ?nut) (unfastened ?hub) (not (fastened ?hub)) (not (loose ?nut ?hub))))
  (:action do-up
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (have wrench) (have ?nut))
    :effect (and (loose ?nut ?hub) (fastened ?hub) (not (unfastened ?hub)) (not (have ?nut))))
  (:action remove-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (on ?wheel ?hub))
    :effect (and (have ?wheel) (free ?hub) (not (on ?wheel ?hub))))
  (:action put-on-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (free ?hub) (have ?wheel))
    :effect (and (on ?wheel ?hub) (not (free ?hub)) (not (have ?wheel))))

  ; anywhere
  (:action inflate
    :parameters (?wheel - wheel)
    :precondition (and (have pump) (intact ?wheel) (not-inflated ?wheel))
    :effect (and (inflated ?wheel) (not (not-inflated ?wheel)))))
