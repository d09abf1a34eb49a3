package console

import (
	"fmt"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

// pricesVariable names the environment variable that holds the path of a price file.
const pricesVariable = "FIT_PRICES"

// LoadPrices reads the price file that the environment names, if it names one. It is called once,
// before a command runs.
func (c *Console) LoadPrices() error {
	path := c.Getenv(pricesVariable)
	if path == "" {
		return nil
	}
	own, err := readPrices(c.Path(path))
	if err != nil {
		return Exit(ExitUsage, fmt.Errorf("%s: %w", pricesVariable, err))
	}
	c.prices = new(price.Default().With(own))
	return nil
}

// PriceTable is the table that costs are computed from.
func (c *Console) PriceTable() price.Table {
	if c.prices != nil {
		return *c.prices
	}
	return price.Default()
}

// Prices is the same in the form that sessions take.
func (c *Console) Prices() session.Prices { return session.ListPrices(c.PriceTable()) }

func readPrices(path string) (price.Table, error) {
	var file price.File
	if _, err := document.Load("prices", path, &file); err != nil {
		return price.Table{}, err
	}
	table, err := file.Table()
	if err != nil {
		return price.Table{}, fmt.Errorf("%s: %w", path, err)
	}
	return table, nil
}
