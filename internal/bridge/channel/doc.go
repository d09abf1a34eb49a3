// Package channel takes threads of a bridge to places outside, and what people write there to the
// bridge.
//
//  1. GitHub is the issues and discussions of repositories: ServeHTTP receives GitHub's webhooks,
//     and its Channel writes comments.
//  2. Webhook's Channel sends every post, signed, to an address.
//
// What is sent comes from the outbox of package bridge/server, which tries again until it arrives.
// Whatever may be sent twice can be recognised: a comment by its first line, which readers do not
// see, and a webhook by its id.
package channel
