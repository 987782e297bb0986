package advisory

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	cvss20 "github.com/pandatix/go-cvss/20"
	cvss30 "github.com/pandatix/go-cvss/30"
	cvss31 "github.com/pandatix/go-cvss/31"
	cvss40 "github.com/pandatix/go-cvss/40"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// osvSeverity is how bad a record says that it is: a CVSS vector, or another score.
type osvSeverity struct {
	Type  string `json:"type"`
	Score string `json:"score"`
}

// severityOf is the highest that a record says of itself: by its vectors, by words, by the
// word of its database. A score that can't be read says nothing; if none says something, it is unknown.
func severityOf(scores []osvSeverity, database jsontext.Value) policy.Severity {
	worst := policy.SeverityUnknown
	for _, s := range scores {
		worst = max(worst, scored(s.Score))
	}
	var said struct {
		Severity any `json:"severity"`
	}
	if len(database) > 0 && json.Unmarshal(database, &said) == nil {
		if word, ok := said.Severity.(string); ok {
			worst = max(worst, worded(word))
		}
	}
	return worst
}

// worded reads a word, as databases write them.
func worded(word string) policy.Severity {
	word = strings.ToLower(word)
	if word == "moderate" {
		return policy.SeverityMedium
	}
	s, _ := policy.ParseSeverity(word)
	return s
}

// scored reads a score: what begins like no vector can be a word.
func scored(score string) policy.Severity {
	var value float64
	switch version, _, _ := strings.Cut(score, "/"); version {
	case "CVSS:4.0":
		v, err := cvss40.ParseVector(score)
		if err != nil {
			return policy.SeverityUnknown
		}
		value = v.Score()
	case "CVSS:3.1":
		v, err := cvss31.ParseVector(score)
		if err != nil {
			return policy.SeverityUnknown
		}
		value = v.BaseScore()
	case "CVSS:3.0":
		v, err := cvss30.ParseVector(score)
		if err != nil {
			return policy.SeverityUnknown
		}
		value = v.BaseScore()
	default:
		v, err := cvss20.ParseVector(score)
		if err != nil {
			return worded(score)
		}
		return rated2(v.BaseScore())
	}
	return ratedSeverity(value)
}

// ratedSeverity is the qualitative scale of CVSS 3 and 4. A score of 0 is the lowest severity here:
// somebody published it nevertheless.
func ratedSeverity(score float64) policy.Severity {
	switch {
	case score >= 9:
		return policy.SeverityCritical
	case score >= 7:
		return policy.SeverityHigh
	case score >= 4:
		return policy.SeverityMedium
	}
	return policy.SeverityLow
}

// rated2 is the scale that goes with CVSS 2, which has no critical.
func rated2(score float64) policy.Severity {
	return min(ratedSeverity(score), policy.SeverityHigh)
}
