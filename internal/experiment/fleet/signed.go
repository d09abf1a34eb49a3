package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// The headers of a signed message.
const (
	keyHeader       = "Fit-Key"
	signatureHeader = "Fit-Signature"
)

// errSignature is returned for a message that its alleged sender did not sign.
var errSignature = errors.New("it is not signed by the key that it names")

// signed makes a message that says who sent it, whatever way it takes.
func (i identity) signed(subject string, content []byte) (*nats.Msg, error) {
	signature, err := i.Sign(toSign(subject, content))
	if err != nil {
		return nil, err
	}
	message := nats.NewMsg(subject)
	message.Data = content
	message.Header.Set(keyHeader, i.public)
	message.Header.Set(signatureHeader, base64.StdEncoding.EncodeToString(signature))
	return message, nil
}

func toSign(subject string, content []byte) []byte {
	return append([]byte(subject+"\n"), content...)
}

// checkSigned makes sure that a message was signed by a key.
func checkSigned(key, subject string, header nats.Header, content []byte) error {
	pair, err := nkeys.FromPublicKey(key)
	if err != nil || header.Get(keyHeader) != key {
		return errSignature
	}
	signature, err := base64.StdEncoding.DecodeString(header.Get(signatureHeader))
	if err != nil || pair.Verify(toSign(subject, content), signature) != nil {
		return errSignature
	}
	return nil
}

// ticketOf returns what proves that its owner was given an attempt: it is in the message of the
// attempt, which only the worker that takes it can read, and only the coordinator can make it.
func ticketOf(secret, name string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(name))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// claimProof returns what proves that a key was given an attempt. Others read it, and have another
// key.
func claimProof(ticket, key string) string { return ticketOf(ticket, "running "+key) }

// cancelProof returns what proves that a cancellation comes from the coordinator of an attempt. It
// does not show the ticket: all workers hear it.
func cancelProof(ticket string) string { return ticketOf(ticket, "cancel") }
