package acp

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// functions are those that a template may name, for the parser; apply knows what they do.
func functions() map[string]any {
	known := map[string]any{}
	const names = "and eq ge gt html index js json le len lt ne not or print printf println slice urlquery"
	for name := range strings.FieldsSeq(names) {
		known[name] = true
	}
	return known
}

// apply returns what a function of templates returns.
func apply(name string, arguments []any) (any, error) {
	switch name {
	case "print":
		return fmt.Sprint(arguments...), nil
	case "println":
		return fmt.Sprintln(arguments...), nil
	case "html":
		return template.HTMLEscaper(arguments...), nil
	case "js":
		return template.JSEscaper(arguments...), nil
	case "urlquery":
		return template.URLQueryEscaper(arguments...), nil
	}
	if len(arguments) == 0 {
		return nil, fmt.Errorf("%s needs an argument", name)
	}
	first, others := arguments[0], arguments[1:]
	truth, _ := template.IsTrue(first)
	switch name {
	case "and", "or": // the rendering has seen that none before the last decides
		return arguments[len(arguments)-1], nil
	case "not":
		return !truth, nil
	case "printf":
		return fmt.Sprintf(fmt.Sprint(first), others...), nil
	case "json":
		encoded, err := jsonenc.Marshal(first)
		return string(encoded), err
	case "len":
		v := reflect.ValueOf(first)
		if k := v.Kind(); k != reflect.String && k != reflect.Slice && k != reflect.Map {
			return nil, fmt.Errorf("%v has no length", first)
		}
		return v.Len(), nil
	case "index":
		return index(first, others)
	case "slice":
		return slice(first, others)
	}
	return compare(name, first, others)
}

// index returns an element of a list, a byte of a text or an entry of a map, of which each may hold
// the next.
func index(of any, at []any) (any, error) {
	for _, key := range at {
		v := reflect.ValueOf(of)
		i, isNumber := key.(int)
		text, isText := key.(string)
		switch {
		case (v.Kind() == reflect.Slice || v.Kind() == reflect.String) && isNumber && i >= 0 && i < v.Len():
			of = v.Index(i).Interface()
		case v.Kind() == reflect.Map && isText:
			entry := v.MapIndex(reflect.ValueOf(text))
			if !entry.IsValid() {
				entry = reflect.Zero(v.Type().Elem())
			}
			of = entry.Interface()
		default:
			return nil, fmt.Errorf("%v has nothing at %v", of, key)
		}
	}
	return of, nil
}

// slice returns a part of a list or a text.
func slice(of any, bounds []any) (any, error) {
	v := reflect.ValueOf(of)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.String || len(bounds) > 2 {
		return nil, fmt.Errorf("%v has no parts", of)
	}
	limits := []int{0, v.Len()}
	for i, bound := range bounds {
		at, ok := bound.(int)
		if !ok || at < 0 || at > v.Len() {
			return nil, fmt.Errorf("%v has nothing at %v", of, bound)
		}
		limits[i] = at
	}
	if limits[0] > limits[1] {
		return nil, fmt.Errorf("%v has no part from %d to %d", of, limits[0], limits[1])
	}
	return v.Slice(limits[0], limits[1]).Interface(), nil
}

// compare answers eq, ne, lt, le, gt and ge; eq is true if one of several is equal.
func compare(name string, first any, others []any) (bool, error) {
	if len(others) == 0 || name != "eq" && len(others) > 1 {
		return false, fmt.Errorf("%s compares two values", name)
	}
	equal := false
	for _, other := range others {
		var order int
		var ok bool
		switch a := first.(type) {
		case string:
			order, ok = orderOf(a, other)
		case int:
			order, ok = orderOf(a, other)
		case float64:
			order, ok = orderOf(a, other)
		case bool:
			order, ok = orderOf(fmt.Sprint(a), fmt.Sprint(other))
			ok = ok && (name == "eq" || name == "ne")
		}
		if !ok {
			return false, fmt.Errorf("%s cannot compare %v with %v", name, first, other)
		}
		if name != "eq" {
			return map[string]bool{
				"ne": order != 0, "lt": order < 0, "le": order <= 0, "gt": order > 0, "ge": order >= 0,
			}[name], nil
		}
		equal = equal || order == 0
	}
	return equal, nil
}

// orderOf compares a value with another of the same type.
func orderOf[T cmp.Ordered](a T, other any) (int, bool) {
	b, ok := other.(T)
	return cmp.Compare(a, b), ok
}
