package tracecli

import (
	"encoding/json"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// field is one member of an answer that is printed piece by piece, because one of its members may
// have a hundred thousand rows.
type field struct {
	key   string
	value any
	// rows, if set, calls its argument with every element of an array.
	rows func(row func(any) error) error
}

// fieldsOf prints an object like object does, without holding it in memory.
func (o *output) fieldsOf(file string, fields []field) error {
	if o.multi && o.format != formatText {
		fields = append(fields, field{key: "file", value: file})
	}
	switch o.format {
	case formatJSON:
		return o.fieldsJSON(fields, o.multi)
	case formatNDJSON:
		return o.fieldsCompact(fields)
	}
	o.group(file)
	for _, f := range fields {
		o.print(o.paint(dim, f.key+":") + " ")
		if err := o.fieldValue(f, jsonenc.Style{}, ""); err != nil {
			return err
		}
		o.print("\n")
	}
	return o.failed()
}

func (o *output) fieldsJSON(fields []field, element bool) error {
	level := 0
	if element {
		level = 1
		o.separate()
	}
	o.count++
	margin := "\n" + strings.Repeat("  ", level)
	o.print("{")
	for i, f := range fields {
		if i > 0 {
			o.print(",")
		}
		o.print(margin + "  \"" + f.key + "\": ")
		if err := o.fieldValue(f, jsonenc.Style{Indent: 2, Level: level + 1}, margin+"  "); err != nil {
			return err
		}
	}
	o.print(margin + "}")
	if !element {
		o.print("\n")
	}
	return o.failed()
}

func (o *output) fieldsCompact(fields []field) error {
	for i, f := range fields {
		o.print([]string{"{", ","}[min(i, 1)] + "\"" + f.key + "\":")
		if err := o.fieldValue(f, jsonenc.Style{}, ""); err != nil {
			return err
		}
	}
	o.print("}\n")
	return o.failed()
}

// fieldValue prints a value, or the rows of an array; margin is what a line of the array begins
// with.
func (o *output) fieldValue(f field, style jsonenc.Style, margin string) error {
	if f.rows == nil {
		raw, err := json.Marshal(f.value)
		o.write(style.AppendJSON(nil, raw))
		return err
	}
	count := 0
	style.Level++
	o.print("[")
	err := f.rows(func(row any) error {
		raw, err := o.marshal(row)
		if err != nil {
			return err
		}
		if count > 0 {
			o.print(",")
		}
		count++
		if margin != "" {
			o.print(margin + "  ")
		}
		if _, done := row.(appender); done && style.Indent == 0 {
			o.write(raw)
		} else {
			o.write(style.AppendJSON(nil, raw))
		}
		return o.failed()
	})
	if count > 0 {
		o.print(margin)
	}
	o.print("]")
	return err
}
