package scanning

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// recordTime bounds how long the door takes to record what was found.
const recordTime = 10 * time.Second

// look is one request that is looked through.
type look struct {
	*scannedVisit
	plan    dlp.Plan
	known   []string
	request *http.Request
	said    exchange.Request // without what is found in it
}

// through looks through the request's head, and has its body looked through while it is
// sent.
func (l *look) through() error {
	l.said = exchange.Request{Method: l.request.Method, Path: l.request.URL.EscapedPath()}
	if !l.suspect() {
		return l.lookThroughBody()
	}
	l.said.Method, l.said.Path = l.masked(l.said.Method), l.masked(l.said.Path)
	steps := l.stepsByPlace()
	for _, place := range requestparts.Places() {
		step, known := steps[place]
		if !known {
			return l.unseen("nobody looks at its " + string(place))
		}
		if err := step(place); err != nil {
			return err
		}
	}
	return nil
}

// stepsByPlace are what looks through each place. Those behind the body are looked through when it ends.
func (l *look) stepsByPlace() map[requestparts.Place]func(requestparts.Place) error {
	return map[requestparts.Place]func(requestparts.Place) error{
		requestparts.Method: l.asWritten, requestparts.Host: l.asWritten, requestparts.User: l.asWritten, requestparts.Path: l.asWritten, requestparts.Query: l.lookThroughQuery,
		requestparts.FieldName: l.asWritten, requestparts.FieldValue: l.header,
		requestparts.BodyText:    func(requestparts.Place) error { return l.lookThroughBody() },
		requestparts.TrailerName: behind, requestparts.TrailerValue: behind,
	}
}

// behind looks at nothing: a body's end does, see look.lookBehindBody.
func behind(requestparts.Place) error { return nil }

// partsOfHead are those of the head (the path, the query and the header) in a place.
func (l *look) partsOfHead(at requestparts.Place) []requestparts.Part {
	return slices.DeleteFunc(requestparts.Head(l.request), func(p requestparts.Part) bool { return p.Place != at })
}

// suspect tells whether there is anything to find in the head. Of most requests there is not,
// and one scanner is enough to see that.
func (l *look) suspect() bool {
	var texts []string
	for _, part := range requestparts.Head(l.request) {
		texts = append(texts, spellings(part)...)
	}
	for part := range strings.FieldsFuncSeq(l.request.URL.RawQuery, func(c rune) bool { return c == '&' || c == '=' }) {
		if meant := exchange.UnescapeForm(part); meant != part {
			texts = append(texts, meant)
		}
	}
	s := l.set().Scanner(l.plan.AtMost(dlp.Report), l.known...)
	_, found := s.Write([]byte(strings.Join(texts, "\x00"))) // which no value has
	_, more := s.Close()
	return len(found)+len(more) > 0
}

// spellings are a part, and what its letters may have been.
func spellings(p requestparts.Part) []string {
	all := []string{p.Text}
	for _, other := range []string{strings.ToLower(p.Text), strings.ToUpper(p.Text)} {
		if p.Caseless && other != p.Text {
			all = append(all, other)
		}
	}
	return all
}

// masked is a text as it may be on record.
func (l *look) masked(text string) string {
	clean, _ := l.set().Text(text, l.plan)
	return clean
}

// lookThroughText looks through a text. whole tells that it can't be sent with asterisks in it, so that
// what would be redacted is blocked.
func (l *look) lookThroughText(where, text string, whole bool) (clean string, err error) {
	plan := l.plan
	if whole {
		plan = unredacted(plan)
	}
	s := l.set().Scanner(plan, l.known...)
	out, found := s.Write([]byte(text))
	clean = string(out)
	out, more := s.Close()
	return clean + string(out), l.tellFindings(where, append(found, more...))
}

// unredacted is a plan for what can't be redacted: it is blocked.
func unredacted(p dlp.Plan) dlp.Plan {
	for _, o := range []*dlp.Outcome{&p.Secrets, &p.Personal} {
		if *o == dlp.Redact {
			*o = dlp.Block
		}
	}
	return p
}

// asWritten looks through parts that can't be sent with asterisks in them: with some, a path
// would be another one than was judged, and a name another name.
func (l *look) asWritten(at requestparts.Place) error { return l.lookThroughWhole(l.partsOfHead(at)) }

// lookThroughWhole looks through parts of which nothing can be redacted.
func (l *look) lookThroughWhole(parts []requestparts.Part) error {
	for _, part := range parts {
		where := string(part.Place)
		if part.Name != "" && part.Place != requestparts.FieldName && part.Place != requestparts.TrailerName {
			where += " " + l.masked(part.Name)
		}
		for _, text := range spellings(part) {
			if _, err := l.lookThroughText(where, text, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodedIn are the parts in a place that a server reads out of base64: nothing can be redacted
// there.
func (l *look) encodedIn(at requestparts.Place) []requestparts.Part {
	return slices.DeleteFunc(l.partsOfHead(at), func(p requestparts.Part) bool {
		return !p.Meant || p.Name == "Authorization" // of which the parts are looked at by lookIntoBasic
	})
}

// lookThroughQuery looks through the query as it stands, and then through each name and value as it
// is meant.
func (l *look) lookThroughQuery(at requestparts.Place) error {
	if err := l.lookThroughWhole(l.encodedIn(at)); err != nil {
		return err
	}
	clean, err := l.lookThroughText("query", l.request.URL.RawQuery, false)
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
			redacted, err := l.lookThroughText("query", meant, false)
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

// lookIntoBasic looks into basic authentication.
func (l *look) lookIntoBasic() error {
	user, password, given := l.request.BasicAuth()
	if !given {
		return nil
	}
	const where = "header Authorization"
	cleanUser, err := l.lookThroughText(where, user, false)
	if err != nil {
		return err
	}
	cleanPassword, err := l.lookThroughText(where, password, false)
	if err != nil {
		return err
	}
	if cleanUser != user || cleanPassword != password {
		l.request.SetBasicAuth(cleanUser, cleanPassword)
	}
	return nil
}

// header looks through the values of the header.
func (l *look) header(at requestparts.Place) error {
	if err := l.lookIntoBasic(); err != nil {
		return err
	}
	if err := l.lookThroughWhole(l.encodedIn(at)); err != nil {
		return err
	}
	return l.fields("header ", l.request.Header)
}

// fields looks through values. Their names say where one was found.
func (l *look) fields(kind string, h http.Header) error {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for i, value := range h[name] {
			clean, err := l.lookThroughText(kind+l.masked(name), value, false)
			if err != nil {
				return err
			}
			h[name][i] = clean
		}
	}
	return nil
}

// trailer looks through what comes behind a body.
func (l *look) trailer() error {
	fixed := slices.DeleteFunc(requestparts.Trailer(l.request.Trailer), func(p requestparts.Part) bool { return p.Place == requestparts.TrailerValue && !p.Meant })
	if err := l.lookThroughWhole(fixed); err != nil {
		return err
	}
	return l.fields("trailer ", l.request.Trailer)
}

// tellFindings puts what was found on record. If a finding is blocked, the refusal is the error.
func (l *look) tellFindings(where string, found []dlp.Finding) error {
	fresh := l.selectNews(where, found)
	blocked := len(found) > 0 && found[len(found)-1].Outcome == dlp.Block
	var answer door.FoundAnswer
	for some := range slices.Chunk(fresh, door.MaxFindings) {
		ask := l.newAsk(where)
		for _, f := range some {
			ask.Findings = append(ask.Findings, door.Finding{
				Rule: f.Rule, Class: f.Class, Outcome: f.Outcome, At: f.At, Length: f.Length, Sum: f.Sum[:], Late: f.Late,
			})
		}
		var err error
		if answer, err = l.recordAsk(ask); err != nil {
			return err
		}
		l.noteFindings(where, some, answer.Enough)
		if answer.Enough && !blocked {
			break
		}
	}
	if !blocked {
		return nil
	}
	last := found[len(found)-1]
	what := "a secret"
	if last.Class == dlp.Personal {
		what = "personal data"
	}
	return l.refusal("a request has in it ("+where+") what looks like "+what+" ("+last.Rule+"), and the policy's secret_scanning.requests lets none out", answer.RequestID)
}

func (l *look) newAsk(where string) door.FoundAsk {
	return door.FoundAsk{HostPort: l.at, Request: l.said, Where: where}
}

func (l *look) recordAsk(ask door.FoundAsk) (door.FoundAnswer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.request.Context()), recordTime)
	defer cancel()
	answer, err := l.door.FoundInRequest(ctx, ask)
	if err != nil {
		return answer, &requests.Refusal{
			Rule: door.RuleScanning, Reason: "what was found in a request can't be put on record", Status: http.StatusServiceUnavailable, // which comes on record by itself
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
