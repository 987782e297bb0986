package config

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/endpoint"
)

// fetchTime bounds how long a call waits for the secrets of other tools.
const fetchTime = 30 * time.Second

// credentialOf has an endpoint's calls carry a declared secret, if its declaration names the
// endpoint's host. Nothing is fetched before the first call of any tool. The other result has all of
// its values that any run has had: another call may have brought the endpoint a newer one meanwhile.
func credentialOf(name, address string, broker *secret.Broker) (func(ctx context.Context) (endpoint.Credential, error), tool.Secrets, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); u.Scheme != "https" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, nil, fmt.Errorf("the secret %s would go to %s in the clear; only an endpoint of https, or of this machine, gets one", name, host)
	}
	d, err := broker.Find(name, host)
	if err != nil {
		return nil, nil, err
	}
	how := d.How
	if how.Sign != "" {
		return nil, nil, fmt.Errorf("the secret %s signs requests, and calls of tools are not signed", name)
	}
	if len(how.Where) > 0 { // of a placeholder, which the daemon has none of
		if how, err = exchange.NewManner(exchange.Manner{Header: cmp.Or(how.Header, "Authorization")}); err != nil {
			return nil, nil, err
		}
	}
	lease := broker.StandingLease()
	had := func(fetch bool) (all []string, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
		defer cancel()
		var wants []secret.Want
		if fetch {
			wants = append(wants, secret.Want{Name: name, Host: host})
		}
		values, err := lease.Had(ctx, wants)
		for _, v := range values[name] {
			all = append(all, v.Reveal())
		}
		return all, err
	}
	return func(ctx context.Context) (endpoint.Credential, error) {
		v, err := lease.Value(ctx, name, host)
		if err != nil {
			return endpoint.Credential{}, err
		}
		return endpoint.Credential{Header: how.Header, Value: how.Value(v.Reveal()), Secrets: had}, nil
	}, had, nil
}
