package expr

import (
	"strings"

	"github.com/expr-lang/expr/ast"
)

// patcher turns arithmetic into calls of ours, and lets not cover a whole
// comparison as Python does: the library reads not a == b as (not a) == b.
type patcher struct {
	floors map[int]bool // where a / stands for //, in characters
}

// Visit sees operands before their operation.
func (p patcher) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok && !strings.HasPrefix(callee.Value, inside("")) {
			callee.Value = inside(callee.Value)
		}
	case *ast.BinaryNode:
		nots := 0

		for not, ok := n.Left.(*ast.UnaryNode); ok && negates(not) && !logic[n.Operator]; not, ok = n.Left.(*ast.UnaryNode) {
			n.Left = not.Node
			nots++
		}

		p.arithmetic(node, n)

		for range nots {
			ast.Patch(node, &ast.UnaryNode{Operator: "not", Node: *node})
		}
	}
}

func negates(n *ast.UnaryNode) bool { return n.Operator == "not" || n.Operator == "!" }

func (p patcher) arithmetic(node *ast.Node, n *ast.BinaryNode) {
	name := n.Operator
	if p.floors[n.Location().From] {
		name = "//"
	}

	if _, ok := functions[name]; ok {
		ast.Patch(node, &ast.CallNode{
			Callee: &ast.IdentifierNode{Value: inside(name)}, Arguments: []ast.Node{n.Left, n.Right},
		})
	}
}
