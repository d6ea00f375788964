DROP INDEX attempts_neighbour_fault;
