package requests

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/policy/expression"
)

// hold has a request keep to its terms. Where patterns are to be looked for, all of its
// body is read first.
func (c *Carrier) hold(r *http.Request, terms policy.RequestTerms) *Refusal {
	switch {
	case terms.Git != "" && r.Header.Get("Upgrade") != "":
		return &Refusal{Rule: door.RuleGit, Reason: "a request of git's asks for another protocol", Status: http.StatusBadRequest}
	case terms.HeldPush:
		return c.holdPush(r)
	case !terms.Limited() && len(terms.Patterns) == 0:
		return nil
	case r.Header.Get("Upgrade") != "":
		return &Refusal{Rule: door.RuleHostBody, Reason: "a request asks for a WebSocket, and the policy limits what requests carry (max_body, deny_patterns)"}
	case terms.Limited() && r.ContentLength > terms.MaxBody:
		return tooLong()
	case len(terms.Patterns) > 0:
		return c.search(r, terms)
	case r.Body != nil && r.Body != http.NoBody:
		r.Body = &bounded{ReadCloser: r.Body, left: terms.MaxBody}
	}
	return nil
}

func tooLong() *Refusal {
	return &Refusal{Rule: door.RuleHostBody, Reason: "a request carries more than the policy's max_body", Status: http.StatusRequestEntityTooLarge}
}

// bounded is a body that fails beyond a length, so that the request is never whole.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, tooLong()
	}
	return n, err
}

// search looks for the patterns in all that a request says.
func (c *Carrier) search(r *http.Request, terms policy.RequestTerms) *Refusal {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &Refusal{Rule: door.RuleHostBody, Reason: "a request's body is compressed, and the policy has patterns to look for in it", Status: http.StatusUnsupportedMediaType}
	}
	patterns, err := c.patterns.of(terms.Patterns)
	if err != nil {
		return refusalOf(err)
	}
	if refusal := find(r, nil, patterns); refusal != nil {
		return refusal
	}
	select {
	case c.config.Searches <- struct{}{}:
		defer func() { <-c.config.Searches }()
	case <-r.Context().Done():
		return &Refusal{Reason: "the connection has ended"}
	}
	body, err := io.ReadAll(&bounded{ReadCloser: r.Body, left: terms.MaxBody})
	if refusal, ok := asRefusal(err); ok {
		return refusal
	}
	if err != nil {
		return &Refusal{Rule: door.RuleHostHTTP, Reason: "a request's body did not end", Status: http.StatusBadRequest}
	}
	if refusal := find(r, body, patterns); refusal != nil {
		return refusal
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	switch {
	case len(r.Trailer) > 0: // which only a body of unknown length has
		r.ContentLength = -1
	case len(body) == 0:
		r.Body = http.NoBody
	}
	return nil
}

// find looks for the patterns in a request's target, header, trailer and body.
func find(r *http.Request, body []byte, patterns []*expression.Expression) *Refusal {
	said := append(decoded(r, body), r.URL.RequestURI(), string(body))
	for _, header := range []http.Header{r.Header, r.Trailer} {
		for name, values := range header {
			for _, value := range values {
				said = append(said, name+": "+value)
			}
		}
	}
	for _, text := range said {
		text = strings.ToValidUTF8(text, "\uFFFD")
		for i, pattern := range patterns {
			if found, _ := pattern.Find(text); found {
				return &Refusal{Rule: door.RuleHostPattern, Reason: "a request has in it what " + nth(i) + " of the policy's deny_patterns is about"}
			}
		}
	}
	return nil
}

// decoded is what of a request's text is escaped, as it is meant.
func decoded(r *http.Request, body []byte) []string {
	said := []string{r.URL.Path}
	if query, err := url.QueryUnescape(r.URL.RawQuery); err == nil {
		said = append(said, query)
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		if form, err := url.QueryUnescape(string(body)); err == nil {
			said = append(said, form)
		}
	}
	return said
}

func nth(i int) string {
	words := []string{"the first", "the second", "the third"}
	if i < len(words) {
		return words[i]
	}
	return "a later one"
}

// patterns are the expressions that were looked for last, compiled.
type patterns struct {
	mu       sync.Mutex // guards both
	texts    []string
	compiled []*expression.Expression
}

func (p *patterns) of(texts []string) ([]*expression.Expression, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(p.texts, texts) {
		return p.compiled, nil
	}
	var all []*expression.Expression
	for _, text := range texts {
		e, err := expression.Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	p.texts, p.compiled = slices.Clone(texts), all
	return all, nil
}
