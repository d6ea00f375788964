import { Button, PasswordInput } from "@mantine/core";
import { useEffect, useRef, useState, type SyntheticEvent } from "react";
import { PageTitle } from "@/components/PageTitle";
import { messageOf } from "@/api/errors";
import { Note } from "@/components/Note";

interface Props {
  /** wasKnown: the session ended while a page was shown. */
  wasKnown: boolean;
  onLogIn: (token: string) => Promise<void>;
}

/** Takes a token. Scripts cannot read the session that the server gives for it. */
export function LogIn({ wasKnown, onLogIn }: Props) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLInputElement>(null);

  useEffect(() => field.current?.focus(), []);

  const send = async (event: SyntheticEvent) => {
    event.preventDefault();
    const text = token.trim();
    if (text === "") {
      setProblem("Enter a token. It begins with berth_.");

      return;
    }

    setBusy(true);
    setProblem("");
    try {
      await onLogIn(text);
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };

  return (
    <main style={{ maxWidth: 420, margin: "12vh auto", padding: 16 }}>
      <form className="card" onSubmit={(event) => void send(event)}>
        <PageTitle text="Log in to Berth" />
        {wasKnown && <Note kind="warn">Your session has ended. After you log in, this page is shown again.</Note>}
        <PasswordInput
          mt="md"
          label="Token"
          description="An administrator makes one with: berth token create NAME"
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
          error={problem === "" ? undefined : problem}
          autoComplete="current-password"
          ref={field}
        />
        <Button type="submit" mt="md" fullWidth loading={busy}>
          Log in
        </Button>
      </form>
    </main>
  );
}
