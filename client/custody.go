package client

import (
	"context"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
)

// SealAudit compresses the log's closed segments that are old enough.
func (c *Client) SealAudit(ctx context.Context, req api.SealAudit) (api.SealedAudit, error) {
	return fetchResult[api.SealedAudit](ctx, c, http.MethodPost, "/v1/audit/seal", req)
}

// EraseAudit erases personal data from the log.
func (c *Client) EraseAudit(ctx context.Context, req api.EraseAudit) (api.ErasedAudit, error) {
	return fetchResult[api.ErasedAudit](ctx, c, http.MethodPost, "/v1/audit/erase", req)
}

// RotateAuditKey replaces the log's private key.
func (c *Client) RotateAuditKey(ctx context.Context, req api.RotateAuditKey) (api.RotatedAuditKey, error) {
	return fetchResult[api.RotatedAuditKey](ctx, c, http.MethodPost, "/v1/audit/key", req)
}
