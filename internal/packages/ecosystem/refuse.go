package ecosystem

import (
	"encoding/json"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// The name by which refusals call this product.
const blockedBy = "Blocked by cofferdam"

// maxPhrase bounds a reason phrase: one line that terminals still show.
const maxPhrase = 300

// Problem words a refusal as an RFC 9457 document, with the same sentence in
// the reason phrase. The content type has no parameter, since uv compares it.
func Problem(status int, r Refusal) Answer {
	detail := Sentence(r)
	body, err := json.Marshal(problem{
		Type: "about:blank", Title: refusalTitle(r), Status: status, Detail: detail,
		Rule: r.Rule, Suggest: r.Suggest, RequestID: r.RequestID, Approval: r.Approval, Approve: r.Approve,
	})
	if err != nil { // strings always encode
		body = []byte(`{"title":"` + blockedBy + `"}`)
	}
	return Answer{
		Status:      status,
		Phrase:      clipLine(refusalTitle(r)+": "+detail, maxPhrase),
		ContentType: "application/problem+json",
		Body:        append(body, '\n'),
	}
}

type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Rule      string `json:"rule,omitempty"`
	Suggest   string `json:"suggest,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Approval  string `json:"approval,omitempty"`
	Approve   string `json:"approve,omitempty"`
}

func refusalTitle(r Refusal) string {
	switch r.Cause {
	case Missing, NoSuchRoute:
		return "Not found"
	case Declined:
		return "Declined upstream"
	case ByPolicy, Malformed, Unverified, Unreachable, TooMuch:
	}
	return blockedBy
}

// Sentence is a refusal in one printable ASCII line.
func Sentence(r Refusal) string {
	var parts []string
	if r.What != "" {
		parts = append(parts, r.What+": "+r.Reason)
	} else {
		parts = append(parts, r.Reason)
	}
	switch {
	case r.Approval != "":
		parts = append(parts, Waits(r))
	case r.RequestID != "":
		parts = append(parts, "request "+r.RequestID, "see: cofferdam why")
	}
	return Line(strings.Join(parts, "; "))
}

// Waits says what becomes of what waits for a person.
func Waits(r Refusal) string {
	return "request " + r.Approval + "; a person approves it on the host: " + r.Approve + "; try again then"
}

// Line makes text safe for a header: printable ASCII, one line.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < 0x20 || r > 0x7e:
			return '?'
		}
		return r
	}, s)
}

func clipLine(s string, most int) string {
	return redact.Cut(Line(s), most)
}
