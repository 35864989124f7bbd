using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Threading;

namespace Windlass.Testing
{
    /// <summary>
    /// A Kubernetes control plane that runs as a process of its own: <c>windlass cluster</c>. The control plane stops with
    /// <see cref="Dispose"/>, and when the process of the tests ends, even by kill -9.
    /// </summary>
    /// <remarks>The class is a class fixture or a collection fixture of xUnit as it is.</remarks>
    public sealed class WindlassCluster : IDisposable
    {
        /// <summary>The time until the control plane must be ready. An idle machine needs less than 0.1 seconds.</summary>
        private static readonly TimeSpan StartLimit = TimeSpan.FromSeconds(60);

        /// <summary>The time from the request to stop until the process is killed.</summary>
        private static readonly TimeSpan StopLimit = TimeSpan.FromSeconds(10);

        /// <summary>The pause between two looks for the kubeconfig.</summary>
        private static readonly TimeSpan PollInterval = TimeSpan.FromMilliseconds(5);

        /// <summary>The number of lines of the output that an error quotes.</summary>
        private const int TailLines = 10;

        private readonly string folder;
        private readonly Process process;
        private readonly Queue<string> tail = new Queue<string>();

        /// <summary>Starts a control plane, and returns when the control plane is ready.</summary>
        /// <exception cref="WindlassException">The control plane does not start.</exception>
        public WindlassCluster()
            : this("")
        {
        }

        private WindlassCluster(string arguments)
        {
            var program = Program();
            folder = Path.Combine(Path.GetTempPath(), "windlass-" + Guid.NewGuid().ToString("N"));
            Directory.CreateDirectory(folder);
            try
            {
                process = Spawn(program, arguments);
                Wait();
            }
            catch
            {
                Dispose();
                throw;
            }
        }

        /// <summary>The kubeconfig of an administrator. A client reads the address and the credentials from this file.</summary>
        public string Kubeconfig
        {
            get { return Path.Combine(folder, "kubeconfig"); }
        }

        /// <summary>Starts a control plane with more arguments for <c>windlass cluster</c>, such as <c>--bare</c>.</summary>
        /// <exception cref="WindlassException">The control plane does not start.</exception>
        public static WindlassCluster Start(string arguments)
        {
            return new WindlassCluster(arguments);
        }

        /// <summary>Stops the control plane, and deletes the kubeconfig.</summary>
        public void Dispose()
        {
            if (process != null)
            {
                // The end of its standard input stops the control plane.
                process.StandardInput.Close();
                if (!process.WaitForExit((int)StopLimit.TotalMilliseconds))
                {
                    process.Kill();
                    process.WaitForExit();
                }
                process.Dispose();
            }
            if (Directory.Exists(folder))
            {
                Directory.Delete(folder, true);
            }
        }

        /// <summary>Returns the file that the variable WINDLASS names, or else the program on the PATH.</summary>
        private static string Program()
        {
            var named = Environment.GetEnvironmentVariable("WINDLASS");
            if (!string.IsNullOrEmpty(named))
            {
                return Path.GetFullPath(named);
            }
            var path = Environment.GetEnvironmentVariable("PATH") ?? "";
            var files = path.Split(Path.PathSeparator).Where(directory => directory != "")
                .Select(directory => Path.GetFullPath(Path.Combine(directory, "windlass")));
            var found = files.FirstOrDefault(File.Exists);
            if (found == null)
            {
                throw new WindlassException(
                    "the program windlass is not on the PATH. Install it (cargo install --locked windlass-cli), " +
                    "or name its file in the variable WINDLASS");
            }
            return found;
        }

        private Process Spawn(string program, string arguments)
        {
            var start = new ProcessStartInfo(program, "cluster --until-stdin-closes --kubeconfig kubeconfig " + arguments)
            {
                WorkingDirectory = folder,
                UseShellExecute = false,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                RedirectStandardError = true,
            };
            var spawned = new Process { StartInfo = start };
            spawned.OutputDataReceived += Remember;
            spawned.ErrorDataReceived += Remember;
            try
            {
                spawned.Start();
            }
            catch (System.ComponentModel.Win32Exception error)
            {
                throw new WindlassException("cannot run " + program + ": " + error.Message);
            }
            spawned.BeginOutputReadLine();
            spawned.BeginErrorReadLine();
            return spawned;
        }

        private void Remember(object sender, DataReceivedEventArgs line)
        {
            if (line.Data == null)
            {
                return;
            }
            lock (tail)
            {
                tail.Enqueue(line.Data);
                if (tail.Count > TailLines)
                {
                    tail.Dequeue();
                }
            }
        }

        /// <summary>Waits for the kubeconfig, which is written when the control plane is ready.</summary>
        private void Wait()
        {
            var watch = Stopwatch.StartNew();
            while (!File.Exists(Kubeconfig))
            {
                if (process.HasExited)
                {
                    // Waits for the rest of the output too.
                    process.WaitForExit();
                    throw new WindlassException("windlass cluster ended with code " + process.ExitCode + ":\n" + Tail());
                }
                if (watch.Elapsed > StartLimit)
                {
                    throw new WindlassException(
                        "windlass cluster was not ready within " + StartLimit.TotalSeconds + " s:\n" + Tail());
                }
                Thread.Sleep(PollInterval);
            }
        }

        private string Tail()
        {
            lock (tail)
            {
                return string.Join("\n", tail);
            }
        }
    }

    /// <summary>The control plane did not start.</summary>
    public sealed class WindlassException : Exception
    {
        internal WindlassException(string message)
            : base(message)
        {
        }
    }
}
