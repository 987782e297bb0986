package admission

import (
	"context"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// giveSecret adds to an answer what a request gets by one use. A secret that signs requests is
// not given: it signs this one, here.
func (i *Injection) giveSecret(ctx context.Context, t *tenant, host string, use exchange.Use, answer *door.SecretsAnswer) error {
	d, err := i.secrets.Find(use.Secret, host)
	if err != nil {
		return err
	}
	if signs := d.How.Sign != ""; signs != (use.Sign != nil) {
		return fault.New(fault.ErrForbidden, "the secret %q is not used in that way", use.Secret)
	}
	v, err := t.secrets.Value(ctx, use.Secret, host)
	if err != nil {
		return err
	}
	answer.Values[use.Secret] = i.shownToGateway(use.Secret, v)
	if use.Sign == nil {
		return nil
	}
	if name, _, _ := strings.Cut(use.Sign.Host, ":"); !strings.EqualFold(name, host) {
		return fault.New(fault.ErrForbidden, "a request to %s is not signed for another host", host)
	}
	keys, err := keysOf(d, v)
	if err != nil {
		return err
	}
	answer.Header, err = use.Sign.Sign(ctx, keys, time.Now())
	return err
}

// shownToGateway is what of a secret the gateway may see, since it goes to the host: all of it, or of
// a key that signs the token of its session.
func (i *Injection) shownToGateway(name string, v secret.Value) string {
	d, err := i.secrets.Find(name, "")
	if err != nil {
		return ""
	}
	if d.How.Sign == "" || v.Own() {
		return v.Reveal()
	}
	keys, err := keysOf(d, v)
	if err != nil {
		return ""
	}
	return keys.Token
}

func keysOf(d secret.Declared, v secret.Value) (sigv4.Keys, error) {
	keys, err := sigv4.ReadKeys(d.KeyID, v.Reveal())
	if err != nil {
		return keys, fault.New(fault.ErrUnavailable, "the secret %q can't be had: %s", d.Name, fault.Sentence(err, "it is no key"))
	}
	return keys, nil
}
