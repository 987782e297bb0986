package mcp

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// The addresses of resources.
const (
	policyURI     = "cofferdam://policy"
	approvalsURI  = "cofferdam://approvals"
	ledgerPrefix  = "cofferdam://sandboxes/"
	ledgerSuffix  = "/ledger"
	jsonType      = "application/json"
	maxLedgerRows = 500
)

// addResources adds what clients show their people beside tools.
func (s *Server) addResources() {
	s.resource(&sdk.Resource{
		URI: policyURI, Name: "policy", Title: "The policy of this session, explained", MIMEType: jsonType,
		Description: "What each key of the policy means, and whether it is enforced here.",
	}, func(ctx context.Context, c call) (any, error) { return explainPolicy(ctx, c, policyInput{}) })
	s.resource(&sdk.Resource{
		URI: approvalsURI, Name: "approvals", Title: "Requests that this session filed", MIMEType: jsonType,
		Description: "What waits for a person, and how it is answered.",
	}, func(ctx context.Context, c call) (any, error) { return c.peer.approvals(ctx) })
	s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: ledgerPrefix + "{sandbox}" + ledgerSuffix, Name: "ledger", Title: "The ledger of a sandbox", MIMEType: jsonType,
		Description: "The records of the packages that a sandbox asked for, as the log has them: what was served, installed and refused.",
	}, func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return s.readResource(ctx, req, func(ctx context.Context, c call) (any, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, ledgerPrefix), ledgerSuffix)
			return c.peer.ledger(ctx, id)
		})
	})
}

func (s *Server) resource(r *sdk.Resource, content func(context.Context, call) (any, error)) {
	s.sdk.AddResource(r, func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return s.readResource(ctx, req, content)
	})
}

// readResource answers with a resource's content.
func (s *Server) readResource(ctx context.Context, req *sdk.ReadResourceRequest, content func(context.Context, call) (any, error)) (*sdk.ReadResourceResult, error) {
	p, err := s.peerOf(req.Session, req.Extra)
	if err != nil {
		return nil, err
	}
	ctx, done, err := p.enterCall(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	value, err := content(ctx, call{peer: p})
	if err != nil {
		return nil, explained(ctx, err)
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, explained(ctx, err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: jsonType, Text: string(text)}}}, nil
}

// ledger is what the log says of the packages of a sandbox.
type ledger struct {
	Sandbox   string       `json:"sandbox"`
	Records   []api.Record `json:"records"`
	Total     int          `json:"total"`
	Truncated bool         `json:"truncated"`
}

func (p *peer) ledger(ctx context.Context, id string) (ledger, error) {
	if err := p.checkOwned(id); err != nil {
		return ledger{}, err
	}
	page, err := askBackend(ctx, p, func(b Backend) (api.InstallPage, error) {
		return b.Installs(ctx, client.InstallFilter{Sandboxes: []string{id}, Limit: maxLedgerRows})
	})
	if err != nil {
		return ledger{}, err
	}
	return ledger{Sandbox: id, Records: page.Installs, Total: len(page.Installs), Truncated: page.Next != ""}, nil
}
