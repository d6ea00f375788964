import { Button, Group, Modal, NativeSelect, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type SyntheticEvent } from "react";
import { holdSession } from "@/api/session";
import { Copy } from "@/components/Copy";
import { Confirm } from "@/components/Confirm";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { TokenTable } from "@/components/TokenTable";
import { usePaused } from "@/routes/usePaused";
import { meQuery, startSession } from "@/services/session";
import { create, revoke, tokensQuery, type CreatedToken, type Token, type TokenRole } from "@/services/tokens";

const lives = [
  { value: "0", label: "does not expire" },
  { value: String(30 * 86_400), label: "30 days" },
  { value: String(90 * 86_400), label: "90 days" },
  { value: String(365 * 86_400), label: "1 year" },
];

export function TokensSection({ firstWouldLockOut }: { firstWouldLockOut: boolean }) {
  const queries = useQueryClient();
  const tokens = useQuery(tokensQuery(!usePaused()));
  const [name, setName] = useState("");
  const [role, setRole] = useState<TokenRole>(firstWouldLockOut ? "admin" : "operator");
  const [life, setLife] = useState("0");
  const [made, setMade] = useState<CreatedToken | null>(null);
  const [doomed, setDoomed] = useState<Token | null>(null);

  const release = useRef<() => void>(undefined);
  useEffect(() => () => release.current?.(), []);

  const making = useMutation({
    mutationFn: async () => {
      // The first token makes every later call need one: no answer may replace this page before the secret was seen.
      if (firstWouldLockOut) release.current = holdSession();
      const result = await create({
        name: name.trim(),
        role,
        ...(life !== "0" && { expires_in_seconds: Number(life) }),
      });
      if (firstWouldLockOut) {
        // Without a session the secret is still shown; the log-in page comes after it.
        const me = await startSession(result.secret).catch(() => undefined);
        if (me) queries.setQueryData(meQuery.queryKey, me);
      }

      return result;
    },
    onSuccess: (result) => {
      setMade(result);
      setName("");
    },
    onError: () => release.current?.(),
  });
  const ending = useMutation({
    mutationFn: (id: string) => revoke(id),
    onSuccess: () => {
      setDoomed(null);
      void queries.invalidateQueries({ queryKey: ["tokens"] });
    },
  });

  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    making.mutate();
  };

  return (
    <section className="card" aria-label="Tokens">
      <Title order={2} mb="xs">
        Tokens
      </Title>
      {tokens.isPending && <Loading what="tokens" />}
      {tokens.isError && (
        <ErrorNote error={tokens.error} doing="Reading tokens" onRetry={() => void tokens.refetch()} />
      )}
      {tokens.data && tokens.data.data.length === 0 && <p>There is no token: people on this machine need none.</p>}
      {tokens.data && tokens.data.data.length > 0 && (
        <TokenTable
          tokens={tokens.data.data}
          onRevoke={(token) => {
            ending.reset();
            setDoomed(token);
          }}
        />
      )}
      <form onSubmit={send} style={{ marginTop: 14 }}>
        {firstWouldLockOut && (
          <Note kind="warn">
            As soon as one token exists, every call needs one, yours too. Make it an admin&apos;s and keep it.
          </Note>
        )}
        <Group align="flex-end" mt="xs">
          <TextInput label="Name" required value={name} onChange={(event) => setName(event.currentTarget.value)} />
          <NativeSelect
            label="Role"
            value={role}
            data={[
              { value: "viewer", label: "viewer: reads" },
              { value: "operator", label: "operator: also runs sweeps" },
              { value: "admin", label: "admin: also removes machines, makes tokens" },
            ]}
            onChange={(event) => setRole(event.currentTarget.value as TokenRole)}
          />
          <NativeSelect
            label="Expires"
            value={life}
            data={lives}
            onChange={(event) => setLife(event.currentTarget.value)}
          />
          <Button type="submit" loading={making.isPending}>
            Make a token
          </Button>
        </Group>
        {making.isError && (
          <div style={{ marginTop: 10 }}>
            <ErrorNote error={making.error} doing="Making a token" />
          </div>
        )}
      </form>
      <Modal
        opened={made !== null}
        onClose={() => {
          setMade(null);
          release.current?.();
          void queries.invalidateQueries();
        }}
        title="Copy the token now"
        centered
        closeOnClickOutside={false}
        closeOnEscape={false}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <p>It cannot be shown again. Keep it where you keep passwords.</p>
        <p className="mono break" data-testid="secret">
          {made?.secret}
        </p>
        <Copy text={made?.secret ?? ""} />
      </Modal>
      <Confirm
        opened={doomed !== null}
        title={`Revoke ${doomed?.name ?? ""}?`}
        action="Revoke"
        danger
        busy={ending.isPending}
        error={ending.error}
        onConfirm={() => doomed && ending.mutate(doomed.id)}
        onClose={() => setDoomed(null)}
      >
        <p>Who uses this token, or a session made with it, is refused from now on.</p>
      </Confirm>
    </section>
  );
}
