package versustest

import (
	"context"
	"fmt"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/price"
)

// Judge lets a panel of so many members, which pass everything, judge every run of a directory.
func Judge(ctx context.Context, dir string, options versus.Options, members int) error {
	source, err := versus.Open(ctx, dir, options)
	if err != nil {
		return err
	}
	settings := judge.Settings{Mode: judge.All}
	for i := range members {
		settings.Panel.Members = append(settings.Panel.Members, judge.Member{
			Name:     fmt.Sprintf("member-%d", i),
			Protocol: "chat",
			Model:    fmt.Sprintf("judge-%d", i),
			Family:   fmt.Sprintf("family-%d", i),
		})
	}
	if settings.Prompts, err = judge.LoadPrompts(""); err != nil {
		return err
	}
	subjects := source.Subjects()
	store, err := judge.Open(dir)
	if err != nil {
		return err
	}
	_, err = store.Ask(ctx, settings, subjects, judge.Limits{
		Client: func(judge.Member) (model.Client, error) { return kind{}, nil },
	})
	if closed := store.Close(); err == nil {
		err = closed
	}
	return err
}

// kind is a model that passes everything.
type kind struct{}

// Complete implements model.Client.
func (kind) Complete(context.Context, model.Request) (model.Response, error) {
	return model.Response{
		Blocks: []model.Block{{
			Type: model.BlockText,
			Text: `So. {"result":"Pass","confidence":0.9,"critique":"it adds","evidence":` +
				`["calc.go:4 \"return a + b\"","trace:6 \"go test ./...\""],"claims":[]}`,
		}},
		StopReason: model.StopEndTurn,
		Usage:      price.TokenUsage{InputTokens: 1000, OutputTokens: 60},
	}, nil
}
