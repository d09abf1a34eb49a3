package display

import (
	"fmt"
	"strconv"
)

// Dollars writes an amount with its cents, and one of less than a cent with two significant digits.
func Dollars(usd float64) string {
	if usd <= 0 || usd >= 0.01 {
		return fmt.Sprintf("$%.2f", usd)
	}
	rounded, _ := strconv.ParseFloat(fmt.Sprintf("%.1e", usd), 64)
	return "$" + strconv.FormatFloat(rounded, 'f', -1, 64)
}
