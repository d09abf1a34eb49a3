package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// ReviewsFile is the file of a run directory with people's reviews of flags, one line each.
const ReviewsFile = "reviews.jsonl"

// Review is a person's statement about the flags of one kind of an attempt: they are not cheating.
type Review struct {
	Key ledger.Key `json:"key"`
	// Record is the hash of the attempt's sealed record: a review is only about this one.
	Record string `json:"record"`
	Flag   string `json:"flag"` // its kind
	session.Clearance
}

// Reviews are those of a run directory.
type Reviews []Review

// ReadReviews reads the reviews of a run directory; a directory without any has none. A line that a
// crash has torn is ignored.
func ReadReviews(root string) (Reviews, error) {
	content, err := os.ReadFile(filepath.Join(root, ReviewsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read reviews: %w", err)
	}
	var reviews Reviews
	for line := range bytes.Lines(content) {
		var review Review
		if json.Unmarshal(line, &review) == nil && review.Record != "" {
			reviews = append(reviews, review)
		}
	}
	return reviews, nil
}

// AddReview appends a review to those of a run directory.
func AddReview(ctx context.Context, root string, review Review) error {
	line, err := jsonenc.Marshal(review)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(root, ReviewsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write review: %w", err)
	}
	err = jsonlines.LockWait(ctx, file)
	if err == nil {
		err = jsonlines.Append(file, line)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write review: %w", err)
	}
	return nil
}

// of returns the reviews of an attempt.
func (r Reviews) of(record *ledger.Record) Reviews {
	var found Reviews
	for i := range r {
		if r[i].Record == record.Hash && r[i].Key == record.Key() {
			found = append(found, r[i])
		}
	}
	return found
}

// clear marks the flags that a person has looked at. Of several reviews the last counts.
func (r Reviews) clear(flags []session.IntegrityFlag) {
	for i := range flags {
		for j := range r {
			if r[j].Flag == flags[i].Kind {
				flags[i].Cleared = &r[j].Clearance
			}
		}
	}
}
