package golang

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// HTTP's numbers for the statuses here.
const (
	statusOK         = 200
	badRequest       = 400
	forbidden        = 403
	notFound         = 404
	failedDependency = 424
)

// The part that the go command prints of a body: so many lines and bytes, and nothing at
// all of one with other than printable text. It stops at an empty line.
const (
	mostLines = 8
	mostBytes = 640
)

// Refuse words a refusal: the go command prints the reason phrase and, indented
// below it, the body. Policy is never 404, for which it asks elsewhere.
func (Protocol) Refuse(r ecosystem.Refusal) ecosystem.Answer {
	status := statusOf(r.Cause)
	title := "Blocked by cofferdam"
	switch {
	case status == notFound:
		title = "Not found"
	case r.Cause == ecosystem.Declined:
		title = "Declined upstream"
	}
	phrase := title
	if r.What != "" {
		phrase += ": " + redact.Cut(ecosystem.Line(r.What), mostBytes/4)
	}
	return ecosystem.Answer{Status: status, Phrase: phrase, ContentType: typeText, Body: []byte(refusalWords(r))}
}

func statusOf(cause ecosystem.Cause) int {
	switch cause {
	case ecosystem.Malformed:
		return badRequest
	case ecosystem.Missing, ecosystem.NoSuchRoute:
		return notFound
	case ecosystem.Unverified, ecosystem.Unreachable, ecosystem.Declined:
		return failedDependency
	case ecosystem.ByPolicy, ecosystem.TooMuch:
	}
	return forbidden
}

// refusalWords are the lines of a refusal's body. The lines to write to allow it come last, and
// only whole; of what waits for a person, how they approve it.
func refusalWords(r ecosystem.Refusal) string {
	reason := strings.TrimSpace(ecosystem.Line(r.Reason))
	if reason == "" {
		reason = "the request is refused" // an empty line would end what is printed
	}
	lines := []string{redact.Cut(reason, mostBytes/2)}
	if r.Rule != "" {
		lines = append(lines, "rule: "+redact.Cut(ecosystem.Line(r.Rule), mostBytes/8))
	}
	if r.Approval != "" {
		return strings.Join(append(lines,
			"it waits for a person as "+redact.Cut(ecosystem.Line(r.Approval), mostBytes/10), "on the host: "+redact.Cut(ecosystem.Line(r.Approve), mostBytes/10),
			"then run the same command again"), "\n") + "\n"
	}
	if r.RequestID != "" {
		lines = append(lines, "request "+redact.Cut(ecosystem.Line(r.RequestID), mostBytes/8)+"; see: cofferdam why")
	}
	if suggested := suggestion(r.Suggest); len(lines)+len(suggested) <= mostLines {
		all := strings.Join(append(slices.Clip(lines), suggested...), "\n")
		if len(all) < mostBytes {
			return all + "\n"
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func suggestion(yaml string) []string {
	var lines []string
	for line := range strings.SplitSeq(yaml, "\n") {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, ecosystem.Line(line))
		}
	}
	if len(lines) > 0 {
		lines = append([]string{"to allow it:"}, lines...)
	}
	return lines
}
