package wire_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/model/wire"
)

// TestWhoseFaultAnErrorReplyIs: what the account, the service or a proxy refuses is not the work of
// the agent whose request it was.
func TestWhoseFaultAnErrorReplyIs(t *testing.T) {
	const (
		request = wire.FaultRequest
		account = wire.FaultAccount
		service = wire.FaultService
	)
	invalid := func(message string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","message":"` + message + `"}}`
	}
	for name, test := range map[string]struct {
		status int
		body   string
		want   wire.Fault
	}{
		"a field that is wrong":       {400, invalid("max_tokens: must be positive"), request},
		"a conversation too long":     {400, invalid("prompt is too long: 210000 tokens"), request},
		"a request too large":         {413, `{"error":{"type":"request_too_large","message":"over 32 MB"}}`, request},
		"usage limits":                {400, invalid("You have reached your specified API usage limits."), account},
		"an organisation":             {400, invalid("This organization has been disabled."), account},
		"a restricted organisation":   {400, invalid("Your organization has been restricted from this feature"), account},
		"an account without payment":  {400, `{"error":{"message":"Your account is not active.","type":"billing_not_active"}}`, account},
		"throttling":                  {400, `{"message":"Please wait.","__type":"ThrottlingException"}`, account},
		"an upstream of a proxy":      {400, `{"error":{"message":"connection reset","type":"upstream_error"}}`, account},
		"a deployment that is gone":   {400, `{"error":{"code":"DeploymentNotFound","message":"It does not exist."}}`, account},
		"a code beside a known type":  {400, `{"error":{"type":"invalid_request_error","code":"bad_schema","message":"x"}}`, request},
		"a size, whatever its type":   {413, `{"error":{"type":"too_big","message":"no"}}`, request},
		"a validation":                {400, `{"message":"max_tokens is negative","__type":"ValidationException"}`, request},
		"a location":                  {400, `{"error":{"message":"User location is not supported."}}`, account},
		"a key that has expired":      {400, `{"error":{"status":"INVALID_ARGUMENT","message":"API key expired."}}`, account},
		"a login that has expired":    {400, invalid("OAuth token has expired. Please obtain a new token"), account},
		"an unverified organisation":  {400, invalid("Your organization must be verified to stream this model."), account},
		"a plan without the feature":  {400, invalid("The long context beta is not available for this subscription."), account},
		"a withdrawn model":           {400, invalid("Your access to this model has been suspended."), account},
		"an operation":                {400, `{"message":"Operation not allowed"}`, account},
		"tokens too many":             {400, invalid("max_tokens: 300000 is not valid"), request},
		"a country":                   {400, invalid("Country, region, or territory not supported"), account},
		"a deprecated model":          {400, invalid("The model gpt-4 has been deprecated"), account},
		"an unknown model":            {400, invalid("unknown model: x"), account},
		"a model that is not found":   {404, `{"error":{"type":"not_found_error","message":"model: x"}}`, account},
		"a server error":              {400, `{"error":{"type":"server_error","message":"An error occurred"}}`, service},
		"a proxy's page":              {400, "<html><body>Bad Request</body></html>", service},
		"nothing":                     {400, "", service},
		"an empty object":             {422, "{}", service},
		"a proxy's limit":             {413, "<html>413 Request Entity Too Large</html>", service},
		"a method that is not served": {405, invalid("x"), service},
		"a teapot":                    {418, invalid("x"), service},
		"too early":                   {425, invalid("x"), service},
		"too many":                    {429, invalid("x"), service},
		"a failure":                   {500, invalid("x"), service},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wire.DecodeError([]byte(test.body)).Fault(test.status); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
