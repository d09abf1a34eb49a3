package console

import (
	"bytes"
	"fmt"
	"os"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

// pricesVariable names the environment variable that holds the path of a price file.
const pricesVariable = "FIT_PRICES"

// priceFile is a file that adds prices to the built-in table, or replaces some of its lines.
type priceFile struct {
	Prices  []priceLine       `yaml:"prices" doc:"Prices of models, each from one day on." required:"true"`
	Aliases map[string]string `yaml:"aliases" doc:"Other names of models: alias to model."`
}

// priceLine is the price of one model from one day on, in US dollars per million tokens.
type priceLine struct {
	Model  string     `yaml:"model" doc:"Exact id of the model." required:"true"`
	From   string     `yaml:"from" doc:"First day that the price holds, YYYY-MM-DD." pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" required:"true"`
	Rates  priceRates `yaml:",inline"`
	Long   *longPrice `yaml:"long" doc:"What a call costs whose prompt is long."`
	Source string     `yaml:"source" doc:"Who states this price." required:"true"`
}

type longPrice struct {
	Above int64      `yaml:"above" doc:"Longest prompt in tokens, cached ones included, that is not long." min:"1" required:"true"`
	Rates priceRates `yaml:",inline"`
}

type priceRates struct {
	Input        *float64 `yaml:"input" doc:"Dollars per million uncached input tokens." min:"0" required:"true"`
	Output       *float64 `yaml:"output" doc:"Dollars per million output tokens." min:"0" required:"true"`
	CacheRead    *float64 `yaml:"cache_read" doc:"Dollars per million tokens read from the cache." min:"0"`
	CacheWrite   *float64 `yaml:"cache_write" doc:"Dollars per million tokens written to the cache." min:"0"`
	CacheWrite1h *float64 `yaml:"cache_write_1h" doc:"The same for tokens kept for an hour." min:"0"`
}

// priceSchema returns the JSON Schema of price files.
func priceSchema() ([]byte, error) { return document.SchemaOf("price file", priceFile{}) }

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
	content, err := os.ReadFile(path)
	if err != nil {
		return price.Table{}, err
	}
	doc, err := document.Parse(path, content)
	if err != nil {
		return price.Table{}, err
	}
	if err := doc.Conforms(priceFile{}); err != nil {
		return price.Table{}, err
	}
	encoded, err := doc.JSON()
	if err != nil {
		return price.Table{}, err
	}
	table, err := price.Load(bytes.NewReader(encoded))
	if err != nil {
		return price.Table{}, fmt.Errorf("%s: %w", path, err)
	}
	return table, nil
}
