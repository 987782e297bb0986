package scanning

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/scan"
	"github.com/cofferdam-dev/cofferdam/internal/secret/exchange"
)

// recordTime bounds how long the door takes to record what was found.
const recordTime = 10 * time.Second

// look is one request that is looked through.
type look struct {
	*visit
	plan    scan.Plan
	known   []string
	request *http.Request
	said    exchange.Request // without what is found in it
}

// through looks through the request's head, and has its body looked through while it is
// sent.
func (l *look) through() error {
	l.said = exchange.Request{Method: l.request.Method, Path: l.request.URL.EscapedPath()}
	if !l.suspect() {
		return l.body()
	}
	l.said.Path = l.masked(l.said.Path)
	for _, step := range []func() error{l.path, l.query, l.basic, l.header} {
		if err := step(); err != nil {
			return err
		}
	}
	return l.body()
}

// suspect tells whether there is anything to find in the head. Of most requests there is not,
// and one scanner is enough to see that.
func (l *look) suspect() bool {
	u := l.request.URL
	texts := []string{u.EscapedPath(), u.Path, u.RawQuery}
	for part := range strings.FieldsFuncSeq(u.RawQuery, func(c rune) bool { return c == '&' || c == '=' }) {
		if meant := exchange.UnescapeForm(part); meant != part {
			texts = append(texts, meant)
		}
	}
	if user, password, given := l.request.BasicAuth(); given {
		texts = append(texts, user, password)
	}
	for _, values := range l.request.Header {
		texts = append(texts, values...)
	}
	s := l.set().Scanner(l.plan.AtMost(scan.Report), l.known...)
	_, found := s.Write([]byte(strings.Join(texts, "\x00"))) // which no value has
	_, more := s.Close()
	return len(found)+len(more) > 0
}

// masked is a text as it may be on record.
func (l *look) masked(text string) string {
	clean, _ := l.set().Text(text, l.plan)
	return clean
}

// text looks through a text. whole tells that it can't be sent with asterisks in it, so that
// what would be redacted is blocked.
func (l *look) text(where, text string, whole bool) (clean string, err error) {
	plan := l.plan
	if whole {
		plan = unredacted(plan)
	}
	s := l.set().Scanner(plan, l.known...)
	out, found := s.Write([]byte(text))
	clean = string(out)
	out, more := s.Close()
	return clean + string(out), l.tell(where, append(found, more...))
}

// unredacted is a plan for what can't be redacted: it is blocked.
func unredacted(p scan.Plan) scan.Plan {
	for _, o := range []*scan.Outcome{&p.Secrets, &p.Personal} {
		if *o == scan.Redact {
			*o = scan.Block
		}
	}
	return p
}

// path looks through the path. With asterisks in it, it would be another one than was judged.
func (l *look) path() error {
	escaped := l.request.URL.EscapedPath()
	if _, err := l.text("path", escaped, true); err != nil || l.request.URL.Path == escaped {
		return err
	}
	_, err := l.text("path", l.request.URL.Path, true)
	return err
}

// query looks through the query as it stands, and then through each name and value as it
// is meant.
func (l *look) query() error {
	clean, err := l.text("query", l.request.URL.RawQuery, false)
	if err != nil {
		return err
	}
	fields := strings.Split(clean, "&")
	for i, field := range fields {
		if !strings.ContainsAny(field, `%+\&`) {
			continue
		}
		parts := strings.SplitN(field, "=", 2)
		for j, part := range parts {
			meant := exchange.UnescapeForm(part)
			redacted, err := l.text("query", meant, false)
			if err != nil {
				return err
			}
			if redacted != meant {
				parts[j] = url.QueryEscape(redacted)
			}
		}
		fields[i] = strings.Join(parts, "=")
	}
	l.request.URL.RawQuery = strings.Join(fields, "&")
	return nil
}

// basic looks into basic authentication.
func (l *look) basic() error {
	user, password, given := l.request.BasicAuth()
	if !given {
		return nil
	}
	const where = "header Authorization"
	cleanUser, err := l.text(where, user, false)
	if err != nil {
		return err
	}
	cleanPassword, err := l.text(where, password, false)
	if err != nil {
		return err
	}
	if cleanUser != user || cleanPassword != password {
		l.request.SetBasicAuth(cleanUser, cleanPassword)
	}
	return nil
}

// header looks through the values of the header. Its names say where one was found.
func (l *look) header() error { return l.fields("header ", l.request.Header) }

func (l *look) fields(kind string, h http.Header) error {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for i, value := range h[name] {
			clean, err := l.text(kind+l.masked(name), value, false)
			if err != nil {
				return err
			}
			h[name][i] = clean
		}
	}
	return nil
}

// tell puts what was found on record. What is blocked is an error: the refusal.
func (l *look) tell(where string, found []scan.Finding) error {
	fresh := l.news(where, found)
	blocked := len(found) > 0 && found[len(found)-1].Outcome == scan.Block
	var answer door.FoundAnswer
	for some := range slices.Chunk(fresh, door.MaxFindings) {
		ask := l.ask(where)
		for _, f := range some {
			ask.Findings = append(ask.Findings, door.Finding{
				Rule: f.Rule, Class: f.Class, Outcome: f.Outcome, At: f.At, Length: f.Length, Sum: f.Sum[:], Late: f.Late,
			})
		}
		var err error
		if answer, err = l.record(ask); err != nil {
			return err
		}
		l.note(where, some, answer.Enough)
		if answer.Enough && !blocked {
			break
		}
	}
	if !blocked {
		return nil
	}
	last := found[len(found)-1]
	what := "a secret"
	if last.Class == scan.Personal {
		what = "personal data"
	}
	return l.refusal("a request has in it ("+where+") what looks like "+what+" ("+last.Rule+"), and the policy's secret_scanning.requests lets none out", answer.RequestID)
}

func (l *look) ask(where string) door.FoundAsk {
	return door.FoundAsk{HostPort: l.at, Request: l.said, Where: where}
}

func (l *look) record(ask door.FoundAsk) (door.FoundAnswer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.request.Context()), recordTime)
	defer cancel()
	answer, err := l.door.FoundInRequest(ctx, ask)
	if err != nil {
		return answer, &requests.Refusal{
			Rule: door.RuleScanning, Reason: "what was found in a request can't be put on record", Status: http.StatusServiceUnavailable, Recorded: true,
		}
	}
	return answer, nil
}

// refusal is one that is on record.
func (l *look) refusal(reason, request string) *requests.Refusal {
	if request != "" {
		reason += "; request " + request + "; see: cofferdam why"
	}
	return &requests.Refusal{Rule: door.RuleScanning, Reason: reason, Recorded: true}
}
