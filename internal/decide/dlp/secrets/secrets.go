// Package secrets has the rules for secrets of known forms: keys and tokens of services, by
// what each begins with. The forms and their checks are those of a library that is kept up
// (docs/dependencies.md); what it has no anchored form for is in own.go.
package secrets

import (
	"regexp"

	"github.com/google/osv-scalibr/veles"
	"github.com/google/osv-scalibr/veles/secrets/anthropicapikey"
	"github.com/google/osv-scalibr/veles/secrets/circleci"
	"github.com/google/osv-scalibr/veles/secrets/common/simpletoken"
	"github.com/google/osv-scalibr/veles/secrets/digitaloceanapikey"
	"github.com/google/osv-scalibr/veles/secrets/gcpapikey"
	"github.com/google/osv-scalibr/veles/secrets/gcpoauth2access"
	"github.com/google/osv-scalibr/veles/secrets/github"
	"github.com/google/osv-scalibr/veles/secrets/grokxaiapikey"
	"github.com/google/osv-scalibr/veles/secrets/huggingfaceapikey"
	"github.com/google/osv-scalibr/veles/secrets/npmjsaccesstoken"
	"github.com/google/osv-scalibr/veles/secrets/openai"
	"github.com/google/osv-scalibr/veles/secrets/openrouter"
	"github.com/google/osv-scalibr/veles/secrets/perplexityapikey"
	"github.com/google/osv-scalibr/veles/secrets/postmanapikey"
	"github.com/google/osv-scalibr/veles/secrets/pypiapitoken"
	"github.com/google/osv-scalibr/veles/secrets/rubygemsapikey"
	"github.com/google/osv-scalibr/veles/secrets/sendgrid"
	"github.com/google/osv-scalibr/veles/secrets/slacktoken"
	"github.com/google/osv-scalibr/veles/secrets/stripeapikeys"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
)

// listed is a detector of the library, and what its values begin with.
type listed struct {
	name     string
	detector veles.Detector
	begins   []string
	least    int // a shorter value is an example or a name; 0: the form says it
}

// library is the choice: forms that begin with something of their own. Those that need a
// word nearby, that take any hexadecimal text of a length, or that read the whole of a file
// at once are left out.
func library() []listed {
	return []listed{
		{"anthropic-key", anthropicapikey.NewDetector(), []string{"sk-ant-"}, 40},
		{"circleci-token", circleci.NewPersonalAccessTokenDetector(), []string{"CCIPAT_"}, 0},
		{"circleci-token", circleci.NewProjectTokenDetector(), []string{"CCIPRJ_"}, 0},
		{"digitalocean-token", digitaloceanapikey.NewDetector(), []string{"dop_v1_"}, 0},
		{"google-api-key", gcpapikey.NewDetector(), []string{"AIzaSy"}, 0},
		{"google-access-token", gcpoauth2access.NewDetector(), []string{"ya29."}, 0},
		{"github-token", github.NewClassicPATDetector(), []string{"ghp_", "Z2hwX"}, 0},
		{"github-token", github.NewFineGrainedPATDetector(), []string{"github_pat_", "Z2l0aHViX3BhdF"}, 0},
		{"github-token", github.NewOAuthTokenDetector(), []string{"gho_", "Z2hvX"}, 0},
		{"github-token", github.NewAppS2STokenDetector(), []string{"ghs_", "Z2hzX"}, 0},
		{"github-token", github.NewAppU2SDetector(), []string{"ghu_", "Z2h1X"}, 0},
		{"github-token", github.NewAppRefreshTokenDetector(), []string{"ghr_", "Z2hyX"}, 0},
		{"xai-key", grokxaiapikey.NewAPIKeyDetector(), []string{"xai-"}, 0},
		{"xai-key", grokxaiapikey.NewManagementKeyDetector(), []string{"xai-token-"}, 0},
		{"huggingface-token", huggingfaceapikey.NewDetector(), []string{"hf_"}, 0},
		{"npm-token", npmjsaccesstoken.NewDetector(), []string{"npm_"}, 0},
		{"openrouter-key", openrouter.NewDetector(), []string{"sk-or-v"}, 0},
		{"openai-key", openai.NewDetector(), []string{"sk-"}, 40},
		{"perplexity-key", perplexityapikey.NewDetector(), []string{"pplx-"}, 0},
		{"postman-key", postmanapikey.NewAPIKeyDetector(), []string{"PMAK-"}, 0},
		{"pypi-token", pypiapitoken.NewDetector(), []string{"pypi-"}, 0},
		{"rubygems-key", rubygemsapikey.NewDetector(), []string{"rubygems_"}, 0},
		{"sendgrid-key", sendgrid.NewDetector(), []string{"SG."}, 0},
		{"slack-token", slacktoken.NewAppLevelTokenDetector(), []string{"xapp-"}, 0},
		{"slack-token", slacktoken.NewAppConfigAccessTokenDetector(), []string{"xoxe.xoxp-"}, 0},
		{"slack-token", slacktoken.NewAppConfigRefreshTokenDetector(), []string{"xoxe-"}, 0},
		{"stripe-key", stripeapikeys.NewSecretKeyDetector(), []string{"sk_live_"}, 20},
		{"stripe-key", stripeapikeys.NewRestrictedKeyDetector(), []string{"rk_live_"}, 20},
		{"stripe-key", stripeapikeys.NewWebhookSecretDetector(), []string{"whsec_"}, 0},
	}
}

// Rules are all rules for secrets. They are made anew at each call, which takes some time.
func Rules() []dlp.Rule {
	tokens := dlp.AlphabetOf(dlp.Letters, dlp.Digits, "-_.+/=")
	var rules []dlp.Rule
	for _, l := range library() {
		rules = append(rules, l.makeRule(tokens))
	}
	return append(rules, ownRules()...)
}

// makeRule makes a rule of a detector. The library tells where a value begins, and not where it
// ends: its expressions do.
func (l listed) makeRule(tokens *dlp.Alphabet) dlp.Rule {
	d, ok := l.detector.(simpletoken.Detector)
	if !ok {
		return dlp.Rule{Name: l.name} // it begins with nothing; TestEveryRule sees it
	}
	plain, coded := anchored(d.Re), anchored(d.ReBase64)
	return dlp.Rule{
		Name: l.name, Begins: l.begins, Alphabet: tokens, Most: int(d.MaxLen) + 1,
		Match: func(run []byte, _ byte) (from, to int) {
			if plain != nil {
				if at := plain.FindIndex(run); at != nil && at[1] >= l.least && l.isGood(d, run[:at[1]]) {
					return 0, at[1]
				}
			}
			if coded != nil {
				if at := coded.FindIndex(run); at != nil {
					if _, places := d.Detect(run[:at[1]]); len(places) > 0 {
						return 0, at[1]
					}
				}
			}
			return 0, 0
		},
	}
}

// isGood tells what the library says of a value: a checksum, where there is one.
func (l listed) isGood(d simpletoken.Detector, value []byte) bool {
	_, good := d.FromMatch(value)
	return good
}

func anchored(re *regexp.Regexp) *regexp.Regexp {
	if re == nil {
		return nil
	}
	return regexp.MustCompile(`\A(?:` + re.String() + `)`)
}

// Literal is a rule for one value that is known: a secret of the run itself. One of fewer
// than eight bytes is too short to be told from other text; ok is false then.
func Literal(name, value string) (r dlp.Rule, ok bool) {
	const least = 8
	if len(value) < least {
		return r, false
	}
	return dlp.Rule{
		Name: name, Begins: []string{value}, Alphabet: dlp.AlphabetOf(value), Most: len(value),
		Match: func([]byte, byte) (from, to int) { return 0, len(value) },
	}, true
}
