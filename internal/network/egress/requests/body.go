package requests

import (
	"bytes"
	"io"
	"iter"
	"math/bits"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/expression"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// holdToTerms has a request keep to its terms, and a push that a person is asked about wait: it is
// held to the same terms as one that may go at once.
func (c *Carrier) holdToTerms(r *http.Request, terms policy.RequestTerms) *Refusal {
	if terms.ByMethod {
		if refusal := c.overridden(r); refusal != nil {
			return refusal
		}
	}
	refusal := c.limitBody(r, terms)
	if refusal == nil && terms.HeldPush {
		refusal = c.holdPush(r, terms)
	}
	return refusal
}

// limitBody has a request keep to what it may carry. Where patterns are to be looked for, all of
// its body is read first.
func (c *Carrier) limitBody(r *http.Request, terms policy.RequestTerms) *Refusal {
	switch {
	case terms.Git != "" && r.Header.Get("Upgrade") != "":
		return &Refusal{Rule: door.RuleGit, Reason: "a request of git's asks for another protocol", Status: http.StatusBadRequest}
	case !terms.Limited() && len(terms.Patterns) == 0:
		return nil
	case r.Header.Get("Upgrade") != "":
		return &Refusal{Rule: door.RuleHostBody, Reason: "a request asks for a WebSocket, and the policy limits what requests carry (max_body, deny_patterns)"}
	case terms.Limited() && r.ContentLength > terms.MaxBody:
		return tooLong()
	case len(terms.Patterns) > 0:
		return c.search(r, terms)
	case r.Body != nil && r.Body != http.NoBody:
		r.Body = &boundedBody{ReadCloser: r.Body, left: terms.MaxBody}
	}
	return nil
}

func tooLong() *Refusal {
	return &Refusal{Rule: door.RuleHostBody, Reason: "a request carries more than the policy's max_body", Status: http.StatusRequestEntityTooLarge}
}

// boundedBody is a body that fails beyond a length, so that the request is never whole.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
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
	if refusal := readable(r); refusal != nil {
		return refusal
	}
	patterns, err := c.patterns.compiledOf(terms.Patterns)
	if err != nil {
		return refusalOf(err)
	}
	sought, end := searchFor(r, patterns)
	defer end()
	if refusal := sought.findIn(slices.Concat([]requestparts.Part{{Place: requestparts.Path, Text: r.URL.RequestURI()}}, requestparts.Head(r), requestparts.Trailer(r.Trailer))); refusal != nil {
		return refusal
	}
	most := terms.MaxBody
	if r.ContentLength >= 0 {
		most = r.ContentLength // which is not above it
	}
	if err := TakePlace(r, c.config.Searches, searchCopies*most); err != nil {
		return noPlace(err)
	}
	body, err := readAll(&boundedBody{ReadCloser: r.Body, left: terms.MaxBody}, r.ContentLength)
	if refusal, ok := asRefusal(err); ok {
		return refusal
	}
	if err != nil {
		return refuseBroken()
	}
	if refusal := c.searchBody(r, body, patterns); refusal != nil {
		return refusal
	}
	Return(r, searchCopies*most-int64(len(body)))
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	switch {
	case len(r.Trailer) > 0: // which only a body of unknown length has
		r.ContentLength = -1
	case len(body) == 0:
		r.Body = http.NoBody
	}
	return nil
}

// searchBody looks for the patterns in a request's body, when no other of the sandbox's is being searched.
func (c *Carrier) searchBody(r *http.Request, body []byte, patterns []*expression.Expression) *Refusal {
	if c.config.Computing != nil {
		select {
		case c.config.Computing <- struct{}{}:
			defer func() { <-c.config.Computing }()
		case <-r.Context().Done():
			return noPlace(r.Context().Err())
		}
	}
	sought, end := searchFor(r, patterns)
	defer end()
	return sought.findInBody(r, body)
}

// refuseBroken refuses a body that breaks off.
func refuseBroken() *Refusal {
	return &Refusal{Rule: door.RuleHostHTTP, Reason: "a request's body did not end", Status: http.StatusBadRequest}
}

// readAll reads a body. length is what it says to have; below 0: it does not say.
func readAll(from io.Reader, length int64) ([]byte, error) {
	var body bytes.Buffer
	if length > 0 { // so that no second one is there while it grows
		body.Grow(int(length) + bytes.MinRead)
	}
	_, err := body.ReadFrom(from)
	return body.Bytes(), err
}

// searchCopies is how often a body is in memory at most while patterns are looked for in it: as
// it is, as one of its readings, as a text, and as things that that may mean. At seven, uploads of
// 4 MB side by side have all of a run's share, and others are refused.
const searchCopies = 6

// noPlace is what TakePlace's error is to the client.
func noPlace(err error) *Refusal {
	if refusal, ok := asRefusal(err); ok {
		return refusal
	}
	return &Refusal{Reason: "the connection has ended"}
}

// readable refuses a request in which patterns can't be found: whose body, or message in the
// query, is compressed, or written in letters that are not read here.
func readable(r *http.Request) *Refusal {
	body := requestparts.BodyOf(r.Header)
	why := body.Unread()
	if why == "" && len(body.Codings()) > 0 {
		why = "it is compressed (" + strings.Join(body.Codings(), ", ") + ")"
	}
	if why == "" {
		why = requestparts.UnreadQuery(r.URL.RawQuery)
	}
	if why == "" {
		return nil
	}
	return unsearched(why)
}

// maxWhy bounds why a body can't be read in a sentence, in bytes: it has words of the client's in it.
const maxWhy = 120

// unsearched refuses a request of which nobody can see whether a pattern is in it.
func unsearched(why string) *Refusal {
	return &Refusal{
		Rule: door.RuleHostBody, Status: http.StatusUnsupportedMediaType,
		Reason: "a request's body can't be read (" + redact.Cut(why, maxWhy) + "), and the policy has patterns to look for in it; send it as it is, in UTF-8",
	}
}

// The ways in which servers read what is no UTF-8.
func asWritten(text string) string       { return text }
func withoutInvalid(text string) string  { return strings.ToValidUTF8(text, "") }
func withoutOverlong(text string) string { return strings.ToValidUTF8(shortest(text), "") }

// shortest is a text in which characters of UTF-8 that have more bytes than they need have as many as
// they need: up to six, as servers read them that are not particular.
func shortest(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		c, size := overlong(text[i:])
		if size == 0 {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteRune(c)
		i += size
	}
	return out.String()
}

// overlong reads a character that is written in more bytes than it needs; size 0: there is none.
func overlong(text string) (c rune, size int) {
	least := map[int]rune{2: 0x80, 3: 0x800, 4: 0x10000, 5: 0x200000, 6: 0x4000000}
	size = bits.LeadingZeros8(^text[0])
	if least[size] == 0 || len(text) < size {
		return 0, 0
	}
	c = rune(text[0] & (0x7f >> size))
	for _, next := range []byte(text[1:size]) {
		if next&0xc0 != 0x80 {
			return 0, 0
		}
		c = c<<6 | rune(next&0x3f)
	}
	if c >= least[size] {
		return 0, 0
	}
	return c, size
}

// meanings are a text, and what it is once and twice without its escapes, where a plus is a
// plus and where it is a space. A bad escape stands for itself, and keeps no other from being
// read: so do most servers. Each is read as read has it.
func meanings(text string, read func(string) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, spaces := range []bool{false, true} {
			meant := text // one at a time: a body is long
			if spaces {
				if !strings.Contains(text, "+") {
					return
				}
				meant = strings.ReplaceAll(text, "+", " ")
			}
			meant = read(meant)
			for range 3 {
				if !yield(meant) {
					return
				}
				next := read(exchange.Unescape(meant))
				if next == meant {
					break
				}
				meant = next
			}
		}
	}
}

func ordinal(i int) string {
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

func (p *patterns) compiledOf(texts []string) ([]*expression.Expression, error) {
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
