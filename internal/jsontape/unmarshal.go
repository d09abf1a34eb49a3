package jsontape

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Unmarshal reads a text that this program has written into what a pointer points to, as
// encoding/json does and several times as fast, and reports whether it could. Names of members must
// be those of the fields to the letter.
func Unmarshal(text []byte, into any) bool {
	parser, _ := parsers.Get().(*Parser)
	defer parsers.Put(parser)
	value, ok := parser.Parse(text)
	target := reflect.ValueOf(into)
	return ok && target.Kind() == reflect.Pointer && !target.IsNil() &&
		decoderOf(target.Type().Elem())(value, target.Elem())
}

// parsers is a pool of unused parsers.
var parsers = sync.Pool{New: func() any { return new(Parser) }}

// decoder sets a value of one type, and reports whether it could.
type decoder func(Value, reflect.Value) bool

// decoders has those made already, by type.
var decoders sync.Map

// decoderOf returns the decoder of a type. It is made when it is first used, because a type may
// hold itself.
func decoderOf(t reflect.Type) decoder {
	known, ok := decoders.Load(t)
	if !ok {
		made := sync.OnceValue(func() decoder { return newDecoder(t) })
		known, _ = decoders.LoadOrStore(t, decoder(func(v Value, into reflect.Value) bool { return made()(v, into) }))
	}
	found, _ := known.(decoder)
	return found
}

// selfDecoding are the interfaces of types that decode themselves.
var selfDecoding = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}

func newDecoder(t reflect.Type) decoder {
	for _, own := range selfDecoding {
		if reflect.PointerTo(t).Implements(own) {
			return decodeSlowly
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Float32, reflect.Float64:
		return decodeFloat
	case reflect.String:
		return decodeString
	case reflect.Pointer:
		return pointerDecoder(t)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return sliceDecoder(t)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !t.Key().Implements(selfDecoding[1]) {
			return mapDecoder(t)
		}
	case reflect.Struct:
		if fields, plain := fieldsOf(t); plain {
			return fields.decode
		}
	}
	return decodeSlowly
}

// decodeSlowly leaves a value of an unusual type to encoding/json.
func decodeSlowly(v Value, into reflect.Value) bool {
	return json.Unmarshal(v.Raw(), into.Addr().Interface()) == nil
}

func decodeBool(v Value, into reflect.Value) bool {
	switch v.Kind() {
	case True, False:
		into.SetBool(v.Bool())
	case Null:
	default:
		return false
	}
	return true
}

func decodeInt(v Value, into reflect.Value) bool {
	if v.Kind() == Null {
		return true
	}
	n, err := strconv.ParseInt(view(v.Raw()), 10, 64)
	if v.Kind() != Number || err != nil || into.OverflowInt(n) {
		return false
	}
	into.SetInt(n)
	return true
}

func decodeFloat(v Value, into reflect.Value) bool {
	if v.Kind() == Null {
		return true
	}
	f, err := strconv.ParseFloat(view(v.Raw()), into.Type().Bits())
	if v.Kind() != Number || err != nil {
		return false
	}
	into.SetFloat(f)
	return true
}

func decodeString(v Value, into reflect.Value) bool {
	switch v.Kind() {
	case String:
		into.SetString(strings.Clone(v.Text()))
	case Null:
	default:
		return false
	}
	return true
}

func pointerDecoder(t reflect.Type) decoder {
	decode := decoderOf(t.Elem())
	return func(v Value, into reflect.Value) bool {
		if v.Kind() == Null {
			into.SetZero()
			return true
		}
		if into.IsNil() {
			into.Set(reflect.New(t.Elem()))
		}
		return decode(v, into.Elem())
	}
}

func sliceDecoder(t reflect.Type) decoder {
	decode := decoderOf(t.Elem())
	return func(v Value, into reflect.Value) bool {
		if v.Kind() != Array {
			into.SetZero()
			return v.Kind() == Null
		}
		count := 0
		for range v.Elements() {
			count++
		}
		list, at := reflect.MakeSlice(t, count, count), 0
		for element := range v.Elements() {
			if !decode(element, list.Index(at)) {
				return false
			}
			at++
		}
		into.Set(list)
		return true
	}
}

func mapDecoder(t reflect.Type) decoder {
	decode := decoderOf(t.Elem())
	return func(v Value, into reflect.Value) bool {
		if v.Kind() != Object {
			into.SetZero()
			return v.Kind() == Null
		}
		if into.IsNil() {
			into.Set(reflect.MakeMap(t))
		}
		for name, member := range v.Members() {
			element := reflect.New(t.Elem()).Elem()
			if !decode(member, element) {
				return false
			}
			into.SetMapIndex(reflect.ValueOf(strings.Clone(name)).Convert(t.Key()), element)
		}
		return true
	}
}

// fields are those of a struct, in order.
type fields []field

type field struct {
	name   string
	at     int
	decode decoder
}

// fieldsOf lists the fields of a struct; false if one needs encoding/json.
func fieldsOf(t reflect.Type) (fields, bool) {
	var list fields
	for at := range t.NumField() {
		f := t.Field(at)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || strings.Contains(options, "string") {
			return nil, false
		}
		name = cmp.Or(name, f.Name)
		if f.IsExported() && name != "-" {
			list = append(list, field{name, at, decoderOf(f.Type)})
		}
	}
	return list, true
}

// decode expects the members in the order of the fields, which is that of our own texts, and
// accepts any order.
func (fs fields) decode(v Value, into reflect.Value) bool {
	if v.Kind() != Object {
		return v.Kind() == Null
	}
	next := 0
	for name, member := range v.Members() {
		for i := range fs {
			at := (next + i) % len(fs)
			if fs[at].name != name {
				continue
			}
			if !fs[at].decode(member, into.Field(fs[at].at)) {
				return false
			}
			next = at + 1
			break
		}
	}
	return true
}
