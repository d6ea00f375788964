package masking

import "slices"

// automaton finds many patterns in one pass over a text, however long they are and
// however they overlap (Aho and Corasick, 1975). It also knows which end of the text
// begins a pattern, and goes on from there in the next piece of the text: libraries do
// neither. It takes 24 bytes for each byte of a pattern, less what patterns share.
type automaton struct {
	nodes []node
	first [256]int32 // children of the root; most texts hardly leave it
}

// node is the beginning of a pattern. Nodes are known by their place; 0 is the root, and
// stands for none as a child.
type node struct {
	child, next int32 // the first one, and the next of the same parent
	fail        int32 // of the longest end of this beginning that begins a pattern, too
	ends        int32 // length of the longest pattern that ends here; 0 = none does
	begins      int32 // length of the longest end that begins a longer pattern; 0 = none does
	of          byte
}

// span is a part of a text, from the first byte to before the last. It begins below 0
// in a piece of text before.
type span struct{ from, to int }

// newAutomaton finds patterns, none of them empty.
func newAutomaton(patterns [][]byte) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for _, pattern := range patterns {
		a.add(pattern)
	}

	a.link()

	return a
}

func (a *automaton) add(pattern []byte) {
	at := int32(0)

	for i, b := range pattern {
		to := a.child(at, b)
		if to == 0 {
			to = int32(len(a.nodes)) //nolint:gosec // G115: values are bounded by berth.MaxSecretBytes
			a.nodes = append(a.nodes, node{of: b, next: a.nodes[at].child})
			a.nodes[at].child = to

			if at == 0 {
				a.first[b] = to
			}
		}

		a.nodes[at].begins = int32(i)
		at = to
	}

	a.nodes[at].ends = int32(len(pattern)) //nolint:gosec // G115: the same
}

// link adds what needs the shorter beginnings first.
func (a *automaton) link() {
	queue := make([]int32, 1, len(a.nodes))

	for i := 0; i < len(queue); i++ {
		at := queue[i]

		for c := a.nodes[at].child; c != 0; c = a.nodes[c].next {
			n := &a.nodes[c]
			if at != 0 {
				n.fail = a.step(a.nodes[at].fail, n.of)
			}

			end := a.nodes[n.fail]
			n.ends = max(n.ends, end.ends)

			if n.child == 0 {
				n.begins = end.begins
			}

			queue = append(queue, c)
		}
	}
}

func (a *automaton) child(at int32, b byte) int32 {
	if at == 0 {
		return a.first[b]
	}

	for c := a.nodes[at].child; c != 0; c = a.nodes[c].next {
		if a.nodes[c].of == b {
			return c
		}
	}

	return 0
}

// step is where a byte leads to.
func (a *automaton) step(at int32, b byte) int32 {
	for {
		if to := a.child(at, b); to != 0 || at == 0 {
			return to
		}

		at = a.nodes[at].fail
	}
}

// find returns where patterns are, ordered by their ends: of those with one end the
// longest. It begins where the text before ended, 0 = nowhere, and says where this one did.
func (a *automaton) find(at int32, text []byte) ([]span, int32) {
	var found []span

	for i, b := range text {
		at = a.step(at, b)
		if n := int(a.nodes[at].ends); n > 0 {
			found = append(found, span{i + 1 - n, i + 1})
		}
	}

	return found, at
}

// begun is how many bytes at the end of a text begin a pattern that goes on.
func (a *automaton) begun(at int32) int { return int(a.nodes[at].begins) }

// starSpans puts stars where spans are, which are ordered by their ends.
func starSpans(text []byte, spans []span) {
	hidden := len(text) // from here on
	for _, s := range slices.Backward(spans) {
		if from := max(s.from, 0); from < hidden {
			star(text[from:min(s.to, hidden)])
			hidden = from
		}
	}
}
