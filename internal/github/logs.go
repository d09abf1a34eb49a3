package github

import (
	"context"
	"fmt"
	"io"
)

// Logs writes the zip file with the logs of a run.
func (c *Client) Logs(ctx context.Context, run int64, w io.Writer, limit int64) error {
	response, err := c.get(ctx, c.url(fmt.Sprintf("actions/runs/%d/logs", run), nil), false)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	n, err := io.Copy(w, io.LimitReader(response.Body, limit+1))
	if err != nil {
		return fmt.Errorf("download the logs of run %d: %w", run, err)
	}
	if n > limit {
		return fmt.Errorf("the logs of run %d are larger than %d bytes", run, limit)
	}
	return nil
}
