-- Lost: nothing.
DROP INDEX attempts_neighbour_fault;
