; Blocks world with four operators and one arm.
(define (domain blockworld)
  (:requirements :strips)
  (:predicates (on ?x ?y) (on-table ?x) (clear ?x) (arm-empty) (holding ?x))
  (:action pickup
    :parameters (?block)
    :precondition (and (arm-empty) (clear ?block) (on-table ?block))
    :effect (and (holding ?block) (not (arm-empty)) (not (clear ?block)) (not (on-table ?block))))
  (:action putdown
    :parameters (?block)
    :precondition (holding ?block)
    :effect (and (arm-empty) (clear ?block) (on-table ?block) (not (holding ?block))))
  (:action stack
    :parameters (?block ?below)
    :precondition (and (holding ?block) (clear ?below))
    :effect (and (on ?block ?below) (clear ?block) (arm-empty) (not (holding ?block)) (not (clear ?below))))
  (:action unstack
    :parameters (?block ?below)
    :precondition (and (arm-empty) (clear ?block) (on ?block ?below))
    :effect (and (holding ?block) (clear ?below) (not (on ?block ?below)) (not (clear ?block)) (not (arm-empty)))))
