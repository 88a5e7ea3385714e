// A real, certified OpenID provider for the tests: node server.mjs PORT CALLBACK. Everybody signs in with any password.
import { Provider } from "oidc-provider";

const [port, callback] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

// The login is the whole account: `ada` is ada@acme.example, `ada@else.example` is that; `unverified` has no proof.
function account(login) {
  const email = login.includes("@") ? login : `${login}@acme.example`;
  return {
    accountId: login,
    claims: () => ({ sub: login, email, email_verified: !login.startsWith("unverified"), name: `${login} of the provider` }),
  };
}

const provider = new Provider(issuer, {
  clients: [
    { client_id: "public", token_endpoint_auth_method: "none", redirect_uris: [callback] },
    { client_id: "confidential", client_secret: "s3cret-of-the-client", redirect_uris: [callback] },
  ],
  findAccount: (_ctx, id) => account(id),
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  conformIdTokenClaims: false, // the claims are in the ID token, as most providers do it
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true } },
  cookies: { keys: ["only for tests"] },
  ttl: { Session: 600, Interaction: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
});

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
