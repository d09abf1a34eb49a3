package acp

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// render fills in a template of package text/template. Execute of that package is not used: it
// calls methods by names that are known at run time only, so that the linker could drop no exported
// method of any type, and the program would be 5 MB larger. As there, a mistake is a panic inside.
func render(text string, v values) (filled string, err error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	trees, err := parse.Parse("", text, "", "", functions())
	if err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	defer func() {
		if mistake := recover(); mistake != nil {
			filled, err = "", fmt.Errorf("%v", mistake)
		}
	}()
	r := rendering{variables: []variable{{"$", v}}}
	if tree := trees[""]; tree != nil {
		r.walk(tree.Root, v)
	}
	return r.out.String(), nil
}

// rendering is a template that is being filled in.
type rendering struct {
	out       strings.Builder
	variables []variable // innermost last
}

type variable struct {
	name  string
	value any
}

// flow says how a range goes on after a part of its list.
type flow int

const (
	onward flow = iota
	nextElement
	endOfRange
)

// walk writes a part of a template, in which the dot has a value.
func (r *rendering) walk(node parse.Node, dot any) flow {
	switch node := node.(type) {
	case *parse.TextNode:
		r.out.Write(node.Text)
	case *parse.ActionNode:
		if value := r.pipe(node.Pipe, dot); len(node.Pipe.Decl) == 0 {
			fmt.Fprint(&r.out, value)
		}
	case *parse.ListNode:
		if node == nil {
			return onward
		}
		for _, part := range node.Nodes {
			if then := r.walk(part, dot); then != onward {
				return then
			}
		}
	case *parse.IfNode:
		return r.branch(&node.BranchNode, dot)
	case *parse.WithNode:
		return r.branch(&node.BranchNode, dot)
	case *parse.RangeNode:
		return r.branch(&node.BranchNode, dot)
	case *parse.BreakNode:
		return endOfRange
	case *parse.ContinueNode:
		return nextElement
	default:
		panic(fmt.Sprintf("%s cannot be used here", node))
	}
	return onward
}

// branch writes the list of an if, a with or a range, or what stands after its else.
func (r *rendering) branch(node *parse.BranchNode, dot any) flow {
	defer func(outside int) { r.variables = r.variables[:outside] }(len(r.variables))
	value := r.pipe(node.Pipe, dot)
	switch truth := isTrue(value); {
	case node.NodeType == parse.NodeRange:
		return r.each(node, value, dot)
	case !truth:
		return r.walk(node.ElseList, dot)
	case node.NodeType == parse.NodeIf:
		return r.walk(node.List, dot)
	default:
		return r.walk(node.List, value)
	}
}

// each writes the list of a range once for each element of a value.
func (r *rendering) each(node *parse.BranchNode, value, dot any) flow {
	elements := elementsOf(value)
	if len(elements) == 0 {
		return r.walk(node.ElseList, dot)
	}
	inside := len(r.variables)
	for _, pair := range elements {
		r.variables = r.variables[:inside]
		for i, declared := range node.Pipe.Decl {
			r.set(declared, pair[2-len(node.Pipe.Decl)+i])
		}
		if r.walk(node.List, pair[1]) == endOfRange {
			break
		}
	}
	return onward
}

// elementsOf returns what a range goes through, with its keys: a list, a map or a number.
func elementsOf(value any) (pairs [][2]any) {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Int:
		for i := range value.(int) {
			pairs = append(pairs, [2]any{i, i})
		}
	case reflect.Slice:
		for i := range v.Len() {
			pairs = append(pairs, [2]any{i, v.Index(i).Interface()})
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			pairs = append(pairs, [2]any{key.Interface(), v.MapIndex(key).Interface()})
		}
		slices.SortFunc(pairs, func(a, b [2]any) int { return order(a[0], b[0]) })
	default:
		panic(fmt.Sprintf("range goes through a list, not through %v", value))
	}
	return pairs
}

func (r *rendering) set(name *parse.VariableNode, value any) {
	r.variables = append(r.variables, variable{name.Ident[0], value})
}

// pipe returns the value of commands of which each gets the value of the one before as its last
// argument.
func (r *rendering) pipe(pipe *parse.PipeNode, dot any) (value any) {
	var last []any
	for _, command := range pipe.Cmds {
		value = r.evaluate(command.Args[0], command.Args[1:], last, dot)
		last = []any{value}
	}
	for _, declared := range pipe.Decl {
		if pipe.IsAssign {
			r.variable(declared.Ident[0]).value = value
		} else {
			r.set(declared, value)
		}
	}
	return value
}

// variable returns the innermost variable of a name, which the parser has seen declared.
func (r *rendering) variable(name string) *variable {
	at := len(r.variables) - 1
	for r.variables[at].name != name {
		at--
	}
	return &r.variables[at]
}

// evaluate returns the value of an operand, or what a function or a method returns for arguments.
func (r *rendering) evaluate(node parse.Node, argumentNodes []parse.Node, last []any, dot any) any {
	function, _ := node.(*parse.IdentifierNode)
	var arguments []any
	for _, argument := range argumentNodes {
		value := r.evaluate(argument, nil, nil, dot)
		if function != nil && (function.Ident == "or" && isTrue(value) || function.Ident == "and" && !isTrue(value)) {
			return value // whatever the others are
		}
		arguments = append(arguments, value)
	}
	arguments = append(arguments, last...)
	value := dot
	var names []string
	switch node := node.(type) {
	case *parse.IdentifierNode:
		value = functions()[node.Ident]
	case *parse.FieldNode:
		names = node.Ident
	case *parse.VariableNode:
		value, names = r.variable(node.Ident[0]).value, node.Ident[1:]
	case *parse.ChainNode:
		value, names = r.evaluate(node.Node, nil, nil, dot), node.Field
	case *parse.PipeNode:
		value = r.pipe(node, dot)
	case *parse.StringNode:
		value = node.Text
	case *parse.BoolNode:
		value = node.True
	case *parse.NumberNode:
		if value = node.Float64; node.IsInt && !strings.ContainsAny(node.Text, ".eEpP") {
			value = int(node.Int64)
		}
	}
	for _, name := range names {
		value = member(value, name)
	}
	if called := reflect.ValueOf(value); called.Kind() == reflect.Func {
		var in []reflect.Value
		for _, argument := range arguments {
			in = append(in, reflect.ValueOf(argument))
		}
		return called.Call(in)[0].Interface()
	}
	if len(arguments) > 0 {
		panic(fmt.Sprintf("%s takes no arguments", node))
	}
	return value
}

// member returns a field, an entry of a map, or one of the methods for templates.
func member(of any, name string) any {
	switch of := of.(type) {
	case values:
		switch name {
		case "First":
			return of.First
		case "FromAnywhere":
			return of.FromAnywhere
		}
	case toolServers:
		if name == "File" {
			return of.File
		}
	}
	v := reflect.ValueOf(of)
	if v.Kind() == reflect.Map {
		return v.MapIndex(reflect.ValueOf(name)).Interface()
	}
	return v.FieldByName(name).Interface()
}

// functions are those that a template may name.
func functions() map[string]any {
	undecided := func(all ...any) any { return all[len(all)-1] } // by those before the last
	return map[string]any{
		"and":      undecided,
		"eq":       equal,
		"ge":       func(a, b any) bool { return order(a, b) >= 0 },
		"gt":       func(a, b any) bool { return order(a, b) > 0 },
		"html":     template.HTMLEscaper,
		"index":    index,
		"js":       template.JSEscaper,
		"json":     toJSON,
		"le":       func(a, b any) bool { return order(a, b) <= 0 },
		"len":      func(of any) int { return reflect.ValueOf(of).Len() },
		"lt":       func(a, b any) bool { return order(a, b) < 0 },
		"ne":       func(a, b any) bool { return !equal(a, b) },
		"not":      func(value any) bool { return !isTrue(value) },
		"or":       undecided,
		"print":    fmt.Sprint,
		"printf":   fmt.Sprintf,
		"println":  fmt.Sprintln,
		"slice":    slice,
		"urlquery": template.URLQueryEscaper,
	}
}

func isTrue(value any) bool {
	truth, _ := template.IsTrue(value)
	return truth
}

func toJSON(value any) string {
	encoded, err := jsonenc.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// index returns an element of a list or of a text or an entry of a map, each of which may hold the
// next.
func index(of any, at ...any) any {
	for _, key := range at {
		v := reflect.ValueOf(of)
		if v.Kind() == reflect.Map {
			of = reflect.Zero(v.Type().Elem()).Interface()
			if entry := v.MapIndex(reflect.ValueOf(key)); entry.IsValid() {
				of = entry.Interface()
			}
		} else {
			of = v.Index(key.(int)).Interface()
		}
	}
	return of
}

// slice returns a part of a list or a text.
func slice(of any, bounds ...int) any {
	v := reflect.ValueOf(of)
	limits := slices.Concat(bounds, []int{0, v.Len()}[len(bounds):])
	return v.Slice(limits[0], limits[1]).Interface()
}

// equal reports whether a value equals one of several of its type.
func equal(a, b any, others ...any) bool {
	return slices.ContainsFunc(append(others, b), func(b any) bool {
		if reflect.TypeOf(a) != reflect.TypeOf(b) {
			panic(fmt.Sprintf("%v and %v are of different types", a, b))
		}
		return a == b
	})
}

// order compares texts or numbers.
func order(a, b any) int {
	switch a := a.(type) {
	case string:
		return cmp.Compare(a, b.(string))
	case int:
		return cmp.Compare(a, b.(int))
	default:
		return cmp.Compare(a.(float64), b.(float64))
	}
}
