package admission

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Injection gives the requests of sandboxes their secrets.
type Injection struct {
	tenants *tenants
	secrets *secret.Broker
}

// admitTenant returns a sandbox that may still ask.
func (i *Injection) admitTenant(ctx context.Context, sandbox string) (*tenant, error) {
	t, err := i.tenants.getTenant(sandbox)
	if err != nil {
		return nil, err
	}
	return t, t.book.Open(ctx)
}

// Credentials implements Door. Without TLS a host gets none.
func (i *Injection) Credentials(ctx context.Context, ask door.CredentialsAsk) (door.CredentialsAnswer, error) {
	t, err := i.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.CredentialsAnswer{}, err
	}
	p := t.policy()
	ofHost, kept := policy.SecretsOfHost(p, ask.Name), i.secrets.Of(ask.Name)
	if err := i.addHostSecrets(ctx, t, ask.HostPort, kept); err != nil {
		return door.CredentialsAnswer{}, err
	}
	answer := door.CredentialsAnswer{
		Placeholders: t.run.Placeholders, Kept: kept, Seek: len(i.listWantedSecrets(t)) > 0 || t.secrets.Any() || len(kept) > 0, Alone: policy.RefusesOwn(p, ask.Name, ask.Port),
	}
	if !ask.TLS {
		answer.Withheld = onlyTLS(ofHost, ask.Name)
		return answer, nil
	}
	for _, cred := range ofHost {
		how := exchange.Manner{Header: cred.Header}
		if d, err := i.secrets.Find(cred.Secret, ask.Name); err == nil {
			how = d.How
		}
		answer.OfHost = append(answer.OfHost, exchange.Credential{Secret: cred.Secret, Git: cred.Git, Manner: how})
	}
	for _, cred := range policy.CredentialsAt(p, ask.Name, ask.Port) {
		d, err := i.secrets.Find(cred.Secret, ask.Name)
		if err != nil {
			return door.CredentialsAnswer{}, err
		}
		answer.Credentials = append(answer.Credentials, exchange.Credential{Secret: cred.Secret, Placeholder: t.run.Placeholders[cred.Secret], Git: cred.Git, Own: cred.Own, Manner: d.How})
	}
	return answer, nil
}

// addHostSecrets adds the secrets of a host to those of which the gateway is told, if the policy allows the host to the sandbox now,
// or a person has. The gateway is believed nothing of where a sandbox has been: it would be told of what other runs have
// there. One that waits for a person is added with the connection that follows the answer.
func (i *Injection) addHostSecrets(ctx context.Context, t *tenant, host door.HostPort, kept []string) error {
	if len(kept) == 0 {
		return nil
	}
	d, err := t.judgeHost(ctx, host.Name, host.Port, "")
	if err == nil && d.Allowed() {
		t.reached.addNames(kept)
	}
	return err
}

// onlyTLS is why nothing is sent to a host without TLS, on whatever port; "": it gets no
// secret. A host that gets a secret over TLS may show it to whoever asks without.
func onlyTLS(ofHost []policy.Credential, host string) string {
	if len(ofHost) == 0 {
		return ""
	}
	return "the policy gives " + host + " the secret " + redact.Cut(ofHost[0].Secret, 128) + ", so plain HTTP to it is refused; use https"
}

// listWantedSecrets lists the secrets that the run may be given, or might have been before it was narrowed.
func (i *Injection) listWantedSecrets(t *tenant) (all []secret.Want) {
	for _, c := range policy.SecretsOf(t.policy()) {
		all = append(all, secret.Want{Name: c.Secret, Host: c.Host})
	}
	for _, one := range i.tenants.tenantsOfRun(t) {
		for _, name := range one.former.listMissing() {
			all = append(all, secret.Want{Name: name}) // to find out whether it is still the same
		}
	}
	return all
}

// maxLent bounds the bytes of values in one answer to the gateway: even if each letter is written as an escape
// of six, it is a small message of the door.
const maxLent = 32 << 10

// Lent implements Door.
func (i *Injection) Lent(_ context.Context, ask door.LentAsk) (door.LentAnswer, error) {
	t, err := i.tenants.getTenant(ask.Sandbox)
	if err != nil {
		return door.LentAnswer{}, err
	}
	reached := t.reached.listSecrets()
	lent, upTo, more := t.secrets.Since(sinceOf(ask.Since, reached), append(i.listWantedSecrets(t), reached...), maxLent)
	answer := door.LentAnswer{Values: map[string][]string{}, Moment: momentOf(upTo, reached), More: more}
	for name, values := range lent {
		for _, v := range values {
			if text := i.shownToGateway(name, v); text != "" {
				answer.Values[name] = append(answer.Values[name], text)
			}
		}
	}
	return answer, nil
}

// others adds what the answer of a host must not have beside what its request gets.
func (i *Injection) others(ctx context.Context, t *tenant, host string, answer *door.SecretsAnswer) error {
	had, err := t.secrets.Had(ctx, append(i.listWantedSecrets(t), t.reached.listSecrets()...))
	for _, one := range i.tenants.tenantsOfRun(t) {
		if err == nil {
			err = one.former.lendMissing(had, one.secrets)
		}
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s; without it nobody can see whether it is in what %s answers", fault.Sentence(err, "a secret can't be had"), host)
	}
	answer.Others = map[string][]string{}
	size := 0
	for name, values := range had {
		for _, v := range values {
			text := i.shownToGateway(name, v)
			if text == "" || text == answer.Values[name] {
				continue
			}
			if size += len(text); size > maxLent {
				return nil // Lent tells the rest, which is asked before any of an answer is passed on
			}
			answer.Others[name] = append(answer.Others[name], text)
		}
	}
	return nil
}

// Secrets implements Door. The policy of now says which there are.
func (i *Injection) Secrets(ctx context.Context, ask door.SecretsAsk) (door.SecretsAnswer, error) {
	t, err := i.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.SecretsAnswer{}, err
	}
	d, err := t.judgeHost(ctx, ask.Name, ask.Port, "")
	if err != nil {
		return door.SecretsAnswer{}, err
	}
	// A request that gets none, to a name that waits for a person, goes on to where it waits.
	if waits := d.Effect == policy.Hold && len(ask.Uses) == 0; !d.Allowed() && !waits {
		return door.SecretsAnswer{}, fault.New(fault.ErrForbidden, "%s", d.Reason)
	}
	if d.Allowed() { // else Connect adds them
		t.reached.addNames(i.secrets.Of(ask.Name)) // by a connection from before the daemon was started, too
	}
	answer := door.SecretsAnswer{Values: map[string]string{}}
	given := policy.CredentialsAt(t.policy(), ask.Name, ask.Port)
	for _, use := range ask.Uses {
		if !slices.ContainsFunc(given, func(c policy.Credential) bool { return c.Secret == use.Secret && c.For(ask.Request.Git) }) {
			return door.SecretsAnswer{}, fault.New(fault.ErrForbidden, "the policy does not give the secret %q to %s any more", redact.Cut(use.Secret, 128), ask.Name)
		}
		if err := i.giveSecret(ctx, t, ask.Name, use, &answer); err != nil {
			return door.SecretsAnswer{}, err
		}
	}
	if err := i.others(ctx, t, ask.Name, &answer); err != nil {
		return door.SecretsAnswer{}, err
	}
	for _, use := range ask.Uses {
		if err := i.recordUse(ctx, t, ask, use); err != nil {
			return door.SecretsAnswer{}, err
		}
	}
	return answer, nil
}

// recordUse puts on record that a request gets a secret.
func (i *Injection) recordUse(ctx context.Context, t *tenant, ask door.SecretsAsk, use exchange.Use) error {
	detail := requestDetail(ask.HostPort, ask.Request, use.Secret, use.Where)
	values, confirm := t.former.detailUse(use.Secret, t.secrets.Held(use.Secret), func(v secret.Value) bool { return i.shownToGateway(use.Secret, v) != "" })
	detail[detailValues] = values
	_, err := t.book.Append(ctx, audit.Record{
		Kind: audit.KindNetwork, Outcome: audit.Used, ResolvedBy: string(policy.ByNetwork), Rule: ruleUse + use.Secret,
		Reason: "the request got the secret " + use.Secret, Detail: detail,
	})
	if err == nil {
		confirm()
	}
	return err
}

func requestDetail(h door.HostPort, r exchange.Request, secret, where string) map[string]string {
	detail := hostDetail(h.Name, h.Port)
	detail[records.DetailRequest] = redact.Cut(r.Method+" "+r.Path, 256)
	detail[records.DetailSecret], detail[records.DetailWhere] = redact.Cut(secret, 128), redact.Cut(where, 128)
	return detail
}

// Declined implements Door.
func (i *Injection) Declined(ctx context.Context, ask door.DeclinedAsk) error {
	t, err := i.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return err
	}
	given := policy.CredentialsAt(t.policy(), ask.Name, ask.Port)
	for _, name := range ask.Secrets {
		if slices.ContainsFunc(given, func(c policy.Credential) bool { return c.Secret == name }) {
			t.secrets.Declined(name)
		}
	}
	return nil
}

// Leaked implements Door.
func (i *Injection) Leaked(ctx context.Context, ask door.LeakAsk) (door.Answer, error) {
	t, err := i.tenants.getTenant(ask.Sandbox) // also of a run that is cut: it has happened
	if err != nil {
		return door.Answer{}, err
	}
	d := leaked(ask)
	r := audit.Record{
		Kind: audit.KindNetwork, Outcome: audit.Blocked, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
		Detail: requestDetail(ask.HostPort, ask.Request, ask.Leak.Secret, ask.Leak.Where),
	}
	records.Explain(&r, d)
	r, err = t.book.Refuse(ctx, r)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}

// leaked is the decision on a leak.
func leaked(ask door.LeakAsk) policy.Decision {
	d := policy.Decision{
		Effect: policy.Deny, Rule: door.RuleHostPlaceholder, ResolvedBy: policy.ByNetwork, Alarm: true,
		Reason: "a request to " + redact.Cut(ask.Name, 253) + " has the placeholder of the secret " + redact.Cut(ask.Leak.Secret, 128) +
			" (" + redact.Cut(ask.Leak.Where, 128) + "), where that secret does not go",
	}
	if ask.Leak.Answer {
		d.Rule = door.RuleHostSecretBegun
		d.Reason = "an answer of " + redact.Cut(ask.Name, 253) + " stopped for seconds, or broke off, within what may be the secret " +
			redact.Cut(ask.Leak.Secret, 128) + ", so it was ended there: a secret can be guessed letter by letter like that"
	}
	return d
}
