package npm

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

const noticeHeader = "npm-notice"

// Refuse words a refusal: a reason phrase, which npm and older pnpm print, and a
// document whose `error` npm and yarn 1 print. None of these statuses is one
// that npm or pnpm tries again, and only what the upstream does not have is 404:
// at that npm suggests to install from elsewhere.
func (Protocol) Refuse(r ecosystem.Refusal) ecosystem.Answer {
	switch r.Cause {
	case ecosystem.Malformed:
		return refusal(statusBadRequest, r)
	case ecosystem.Missing:
		return refusal(statusNotFound, r)
	case ecosystem.Unverified, ecosystem.Unreachable, ecosystem.Declined:
		return refusal(statusFailedDependency, r)
	case ecosystem.ByPolicy, ecosystem.NoSuchRoute, ecosystem.TooMuch:
	}
	return refusal(statusForbidden, r)
}

// refused is the document that goes with a refusal.
type refused struct {
	Error     string `json:"error"`
	Code      string `json:"code"`
	Rule      string `json:"rule,omitempty"`
	Suggest   string `json:"suggest,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Approval  string `json:"approval,omitempty"`
	Approve   string `json:"approve,omitempty"`
}

func refusal(status int, r ecosystem.Refusal) ecosystem.Answer {
	a := ecosystem.Problem(status, r)
	a.ContentType = typeFull
	body, err := json.Marshal(refused{
		Error: ecosystem.Sentence(r), Code: strings.ToUpper(strings.ReplaceAll(string(r.Cause), " ", "_")),
		Rule: r.Rule, Suggest: r.Suggest, RequestID: r.RequestID, Approval: r.Approval, Approve: r.Approve,
	})
	if err != nil { // text that is not UTF-8
		body = []byte(`{"error":"refused"}`)
	}
	a.Body = append(body, '\n')
	return a
}

// Notice is the line that npm prints when it gets a page from which something
// was withheld: without it npm only says that no version matches.
func (Protocol) Notice(r ecosystem.Refusal) map[string]string {
	const most = 500 // of a line that a terminal still shows
	if r.Reason == "" {
		return nil
	}
	return map[string]string{noticeHeader: redact.Cut("cofferdam withholds "+ecosystem.Sentence(r), most)}
}
