// Package size reads sizes that people write.
package size

import (
	"fmt"
	"math/big"
	"strings"
)

var units = map[string]int64{
	"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
}

// Parse returns the number of bytes that a text such as "1.5MB" means.
func Parse(text string) (int64, error) {
	trimmed := strings.TrimSpace(text)
	end := strings.IndexFunc(trimmed, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(trimmed)
	}
	number, unit := trimmed[:end], strings.ToLower(strings.TrimSpace(trimmed[end:]))
	factor, known := units[strings.TrimSuffix(unit, "b")]
	value, valid := new(big.Rat).SetString(number)
	if !known || !valid || number == "." || strings.Count(number, ".") > 1 {
		return 0, fmt.Errorf("%q is no size", text)
	}
	value.Mul(value, new(big.Rat).SetInt64(factor))
	if !value.IsInt() || !value.Num().IsInt64() {
		return 0, fmt.Errorf("%q is no whole number of bytes that fits", text)
	}
	return value.Num().Int64(), nil
}
