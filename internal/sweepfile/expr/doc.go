// Package expr computes the small expressions of a sweep file: the value of a
// derived parameter, such as ceil(0.1 * epochs), and the conditions of
// forbid, such as batch * width > 65536 and optimizer == "adam".
//
//	lowest   or ||
//	         and &&
//	         not !
//	         == != < <= > >= in        one per comparison, no chains
//	         + -
//	         * / // %                  // and % round down, as in Python
//	         - (sign)
//	highest  ** (to the right)         calls, parentheses, lists, names, literals
//
// Functions: abs ceil exp floor log max min pow round sqrt. Whole numbers stay
// whole under + - * // % **, abs, min and max; ceil, floor and round make them.
//
// github.com/expr-lang/expr reads and computes them. The input comes from
// anyone who may submit a sweep, so check lets through only the words above: no
// loops, variables, ranges or patterns of that language, hence the cost grows
// no faster than the text, which MaxLength bounds. Arithmetic is ours
// (functions.go), because the library's whole numbers overflow silently and its
// % refuses fractions.
package expr
