package door

import (
	"context"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// Secrets gives requests their secrets, and records the placeholders that were about to leave and what scanning found
// in requests.
type Secrets interface {
	// Credentials tells what the requests on a connection get, and which placeholders must
	// not leave on it.
	Credentials(ctx context.Context, ask CredentialsAsk) (CredentialsAnswer, error)

	// Secrets gives the secrets of one request: those that it uses, which is on record by
	// then, and those that the run has used before, which must not be in its answer either.
	// The asker keeps none.
	Secrets(ctx context.Context, ask SecretsAsk) (SecretsAnswer, error)

	// Lent tells which values of the run's secrets came to be known since a moment, whichever run
	// was lent them, or was shown them to get one that is. Nobody is sent a value before it is told
	// here, so whoever asks once a part of an answer has come knows all that can be in it.
	Lent(ctx context.Context, ask LentAsk) (LentAnswer, error)

	// Declined has secrets fetched anew at their next use that a host does not take. So that
	// no sandbox has a source asked as often as it likes, that is done once in a while.
	Declined(ctx context.Context, ask DeclinedAsk) error

	// Leaked records that a placeholder was about to leave to where its secret does not go,
	// as an alarm. The answer is the refusal.
	Leaked(ctx context.Context, ask LeakAsk) (Answer, error)

	// Scans tells what is looked for in a sandbox's requests, and what becomes of it.
	Scans(ctx context.Context, ask ScansAsk) (ScansAnswer, error)

	// FoundInRequest records what was found in a request, durable when it returns: once
	// for each value, rule, host and place, however often it is sent.
	FoundInRequest(ctx context.Context, ask FoundAsk) (FoundAnswer, error)
}

// HostPort is a host of a sandbox's requests.
type HostPort struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
	Port    int    `json:"port"`
}

// CredentialsAsk asks what the requests on a connection get.
type CredentialsAsk struct {
	HostPort
	// TLS tells that the client's was ended, and that the host is who it says.
	TLS bool `json:"tls"`
}

// CredentialsAnswer is what the requests on a connection get, without any secret.
type CredentialsAnswer struct {
	Credentials []exchange.Credential `json:"credentials,omitempty"`
	// OfHost are all that are for the host on any port, by any policy that the run is judged by,
	// whether requests here get them or not; they have no placeholders.
	OfHost []exchange.Credential `json:"of_host,omitempty"`
	// Kept are by name the secrets that the configuration has for the host, which it may have by other runs, whether
	// this one gets them or not.
	Kept []string `json:"kept,omitempty"`
	// Alone tells that requests may have no credential of the client's own.
	Alone bool `json:"alone,omitempty"`
	// Placeholders are all that the sandbox has, by their secrets' names.
	Placeholders map[string]string `json:"placeholders,omitempty"`
	// Seek tells that the run has secrets, so that the answers of each host are looked
	// through for them, or that this host may have some of other runs.
	Seek bool `json:"seek,omitempty"`
	// Withheld is why no request may be sent on the connection; "": they may.
	Withheld string `json:"withheld,omitempty"`
}

// SecretsAsk asks for the secrets of one request.
type SecretsAsk struct {
	HostPort
	Request exchange.Request `json:"request"`
	Uses    []exchange.Use   `json:"uses,omitempty"`
}

// SecretsAnswer has the secrets, by their names. Keys that sign requests stay with the daemon:
// of these there is the signature, and the token of its session.
type SecretsAnswer struct {
	Values map[string]string `json:"values,omitempty"`
	Header http.Header       `json:"header,omitempty"`
	// Others are by their names what the answer must not have either: all values that the
	// run has had, and those that it has not used yet.
	Others map[string][]string `json:"others,omitempty"`
}

// LentAsk asks which values of a run's secrets were lent since a moment, to whichever run. The first
// moment is 0; the others are what the answers say.
type LentAsk struct {
	Sandbox string `json:"sandbox"`
	Since   uint64 `json:"since,omitempty"`
}

// LentAnswer has them by their secrets' names, as SecretsAnswer.Others has.
type LentAnswer struct {
	Values map[string][]string `json:"values,omitempty"`
	Moment uint64              `json:"moment"`         // it is complete up to here
	More   bool                `json:"more,omitempty"` // there are more behind it: they are asked for anew
}

// DeclinedAsk tells that a host answered a request with 401 that had got secrets.
type DeclinedAsk struct {
	HostPort
	Secrets []string `json:"secrets"` // by name
}

// LeakAsk tells of a placeholder that was about to be sent to where its secret does not go.
type LeakAsk struct {
	HostPort
	Request exchange.Request `json:"request"`
	Leak    exchange.Leak    `json:"leak"`
}

// The rules of requests that are refused for the sake of a secret.
const (
	RuleHostPlaceholder = "network.placeholder"  // one is left where its secret does not go
	RuleHostSecretBegun = "network.secret-begun" // an answer stopped within what may be the secret
	RuleHostCredential  = "network.credential"   // the secret can't be had, or its answer can't be looked through
)
