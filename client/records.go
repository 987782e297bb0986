package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// RecordFilter selects audit records; its zero value selects all. Several
// kinds or outcomes mean any of them.
type RecordFilter struct {
	Run      string
	Sandbox  string
	User     string // whose run it is, on the host; of an answer, who gave it
	Token    string // the id of the token whose run it is
	Kinds    []string
	Outcomes []string
	From     uint64 // the first sequence number
	Alarms   bool   // only alarms
}

func (f RecordFilter) query() string {
	q := url.Values{}
	for key, value := range map[string]string{"run": f.Run, "sandbox": f.Sandbox, "user": f.User, "token": f.Token} {
		if value != "" {
			q.Set(key, value)
		}
	}
	for _, kind := range f.Kinds {
		q.Add("kind", kind)
	}
	for _, outcome := range f.Outcomes {
		q.Add("outcome", outcome)
	}
	if f.Alarms {
		q.Set("alarms", "1")
	}
	if f.From > 0 {
		q.Set("from", strconv.FormatUint(f.From, 10))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Records yields audit records, oldest first, each as the JSON object of one
// line. After an error nothing more comes.
func (c *Client) Records(ctx context.Context, f RecordFilter) iter.Seq2[json.RawMessage, error] {
	return c.recordLines(ctx, http.MethodGet, "/v1/audit/records"+f.query(), nil)
}

func (c *Client) recordLines(ctx context.Context, method, path string, body any) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		resp, err := c.send(ctx, method, path, body)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadBytes('\n')
			switch {
			case errors.Is(err, io.EOF) && len(line) == 0:
				return
			case err != nil:
				yield(nil, fmt.Errorf("read the records: %w", err))
				return
			case !json.Valid(line):
				yield(nil, fmt.Errorf("read the records: line %q is no JSON", line))
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}
