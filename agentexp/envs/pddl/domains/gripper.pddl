; Gripper, the untyped STRIPS version: a robot with grippers carries balls between rooms.
(define (domain gripper)
  (:requirements :strips)
  (:predicates (room ?r) (ball ?b) (gripper ?g)
               (at-robby ?r) (at ?b ?r) (free ?g) (carry ?b ?g))
  (:action move
    :parameters (?from ?to)
    :precondition (and (room ?from) (room ?to) (at-robby ?from))
    :effect (and (not (at-robby ?from)) (at-robby ?to)))
  (:action pick
    :parameters (?ball ?room ?gripper)
    :precondition (and (ball ?ball) (room ?room) (gripper ?gripper)
                       (at ?ball ?room) (at-robby ?room) (free ?gripper))
    :effect (and (not (at ?ball ?room)) (not (free ?gripper)) (carry ?ball ?gripper)))
  (:action drop
    :parameters (?ball ?room ?gripper)
    :precondition (and (ball ?ball) (room ?room) (gripper ?gripper)
                       (carry ?ball ?gripper) (at-robby ?room))
    :effect (and (not (carry ?ball ?gripper)) (free ?gripper) (at ?ball ?room))))
