package gitwire

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// ResultType is the media type of the answer to a push.
const ResultType = "application/x-git-receive-pack-result"

// maxBand is how many bytes of text go into one line of a side band.
const maxBand = 900

// Refusal is the answer to a push none of whose refs is changed. It is one of git's own, so
// that its client shows the sentence, and that each ref was rejected, for a reason of a few words.
func (p *Pushed) Refusal(sentence, reason string) []byte {
	bands := slices.Contains(p.capabilities, "side-band-64k")
	if !bands {
		reason = sentence
	}
	var report []byte
	if slices.ContainsFunc(p.capabilities, func(c string) bool { return c == "report-status" || c == "report-status-v2" }) {
		report = appendLine(report, "unpack ok\n")
		for _, c := range p.Commands {
			report = appendLine(report, "ng "+c.Ref+" "+oneLine(reason)+"\n")
		}
		report = append(report, flush...)
	}
	if !bands {
		return report
	}
	var answer []byte
	for text := oneLine(sentence) + "\n"; text != ""; {
		part := strings.ToValidUTF8(text[:min(len(text), maxBand)], "")
		answer = appendLine(answer, "\x02"+part)
		text = text[min(len(text), maxBand):]
	}
	for len(report) > 0 {
		part := report[:min(len(report), maxLine-5)]
		answer = appendLine(answer, "\x01"+string(part))
		report = report[len(part):]
	}
	return append(answer, flush...)
}

// oneLine is a text on one line, in which nothing draws on the terminal of whoever pushes.
func oneLine(s string) string { return text.Line(strings.ReplaceAll(s, "\n", " ")) }
