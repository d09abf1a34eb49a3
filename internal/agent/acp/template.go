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
)

// render fills in a template of package text/template. Execute of that package is not used: it
// calls methods by names that are known at run time only, so that the linker could drop no exported
// method of any type, and the program would be 5 MB larger.
func render(text string, v values) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	trees, err := parse.Parse("", text, "", "", functions())
	if err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	r := rendering{variables: []variable{{"$", v}}}
	if tree := trees[""]; tree != nil {
		err = r.walk(tree.Root, v)
	}
	return r.out.String(), err
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

// How a range ends early.
var (
	errBreak    = errors.New("break outside of a range")
	errContinue = errors.New("continue outside of a range")
)

// walk writes a part of a template, in which the dot has a value.
func (r *rendering) walk(node parse.Node, dot any) error {
	switch node := node.(type) {
	case *parse.TextNode:
		r.out.Write(node.Text)
	case *parse.CommentNode:
	case *parse.ActionNode:
		value, err := r.pipe(node.Pipe, dot)
		if err == nil && len(node.Pipe.Decl) == 0 {
			fmt.Fprint(&r.out, value)
		}
		return err
	case *parse.ListNode:
		if node == nil {
			return nil
		}
		for _, part := range node.Nodes {
			if err := r.walk(part, dot); err != nil {
				return err
			}
		}
	case *parse.IfNode:
		return r.branch(&node.BranchNode, dot)
	case *parse.WithNode:
		return r.branch(&node.BranchNode, dot)
	case *parse.RangeNode:
		return r.branch(&node.BranchNode, dot)
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	default:
		return fmt.Errorf("%s cannot be used here", node)
	}
	return nil
}

// branch writes the list of an if, a with or a range, or what stands after its else.
func (r *rendering) branch(node *parse.BranchNode, dot any) error {
	defer func(outside int) { r.variables = r.variables[:outside] }(len(r.variables))
	value, err := r.pipe(node.Pipe, dot)
	if err != nil {
		return err
	}
	truth, _ := template.IsTrue(value)
	switch {
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
func (r *rendering) each(node *parse.BranchNode, value, dot any) error {
	keys, elements, err := elementsOf(value)
	if err == nil && len(elements) == 0 {
		return r.walk(node.ElseList, dot)
	}
	inside := len(r.variables)
	for i, element := range elements {
		r.variables = r.variables[:inside]
		switch declared := node.Pipe.Decl; len(declared) {
		case 1:
			r.set(declared[0], element)
		case 2:
			r.set(declared[0], keys[i])
			r.set(declared[1], element)
		}
		if err = r.walk(node.List, element); errors.Is(err, errBreak) {
			return nil
		} else if err != nil && !errors.Is(err, errContinue) {
			return err
		}
		err = nil
	}
	return err
}

// elementsOf returns what a range goes through: a list, a map by its keys, or a number.
func elementsOf(value any) (keys, elements []any, err error) {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Int:
		for i := range value.(int) {
			keys, elements = append(keys, i), append(elements, i)
		}
	case reflect.Slice:
		for i := range v.Len() {
			keys, elements = append(keys, i), append(elements, v.Index(i).Interface())
		}
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return cmp.Compare(a.String(), b.String())
		}) {
			keys, elements = append(keys, key.Interface()), append(elements, v.MapIndex(key).Interface())
		}
	default:
		return nil, nil, fmt.Errorf("range goes through a list, not through %v", value)
	}
	return keys, elements, nil
}

func (r *rendering) set(name *parse.VariableNode, value any) {
	r.variables = append(r.variables, variable{name.Ident[0], value})
}

// pipe returns the value of commands of which each gets the value of the one before as its last
// argument.
func (r *rendering) pipe(pipe *parse.PipeNode, dot any) (value any, err error) {
	for i, command := range pipe.Cmds {
		var last []any
		if i > 0 {
			last = []any{value}
		}
		if value, err = r.evaluate(command.Args[0], command.Args[1:], last, dot); err != nil {
			return nil, err
		}
	}
	for _, declared := range pipe.Decl {
		at := len(r.variables) - 1
		for pipe.IsAssign && at >= 0 && r.variables[at].name != declared.Ident[0] {
			at--
		}
		if pipe.IsAssign && at >= 0 {
			r.variables[at].value = value
		} else {
			r.set(declared, value)
		}
	}
	return value, nil
}

// evaluate returns the value of an operand, or what a function or a method returns for arguments.
func (r *rendering) evaluate(node parse.Node, argumentNodes []parse.Node, last []any, dot any) (any, error) {
	var arguments []any
	for _, argument := range argumentNodes {
		value, err := r.evaluate(argument, nil, nil, dot)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, value)
		truth, _ := template.IsTrue(value)
		name, _ := node.(*parse.IdentifierNode)
		if name != nil && (name.Ident == "or" && truth || name.Ident == "and" && !truth) {
			return value, nil // whatever the others are
		}
	}
	arguments = append(arguments, last...)
	var value any
	var names []string
	switch node := node.(type) {
	case *parse.IdentifierNode:
		return apply(node.Ident, arguments)
	case *parse.FieldNode:
		value, names = dot, node.Ident
	case *parse.VariableNode:
		names = node.Ident[1:]
		for _, one := range slices.Backward(r.variables) {
			if one.name == node.Ident[0] {
				value = one.value
				break
			}
		}
	case *parse.ChainNode:
		inner, err := r.evaluate(node.Node, nil, nil, dot)
		if err != nil {
			return nil, err
		}
		value, names = inner, node.Field
	case *parse.PipeNode:
		return r.pipe(node, dot)
	case *parse.DotNode:
		value = dot
	case *parse.StringNode:
		value = node.Text
	case *parse.BoolNode:
		value = node.True
	case *parse.NumberNode:
		if value = node.Float64; node.IsInt && !strings.ContainsAny(node.Text, ".eEpP") {
			value = int(node.Int64)
		}
	}
	if len(names) == 0 && len(arguments) > 0 {
		return nil, fmt.Errorf("%s takes no arguments", node)
	}
	for i, name := range names {
		var err error
		var given []any
		if i == len(names)-1 {
			given = arguments
		}
		if value, err = member(value, name, given); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// member returns a field, an entry of a map, or what one of the methods for templates returns.
func member(of any, name string, arguments []any) (any, error) {
	var texts []string
	for _, argument := range arguments {
		texts = append(texts, fmt.Sprint(argument))
	}
	switch v, _ := of.(values); {
	case name == "First" && len(texts) > 0:
		return v.First(texts...), nil
	case name == "FromAnywhere" && len(texts) == 1:
		return v.FromAnywhere(texts[0]), nil
	}
	if servers, ok := of.(toolServers); ok && name == "File" && len(texts) == 1 {
		return servers.File(texts[0])
	}
	var found reflect.Value
	switch v := reflect.ValueOf(of); v.Kind() {
	case reflect.Struct:
		found = v.FieldByName(name)
	case reflect.Map:
		found = v.MapIndex(reflect.ValueOf(name))
	}
	if !found.IsValid() || len(arguments) > 0 {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return found.Interface(), nil
}
